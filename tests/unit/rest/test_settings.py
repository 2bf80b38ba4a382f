"""The statement that goes before, and the configuration of a Data API that stands alone."""

from __future__ import annotations

import pytest

from toft.pg.wire import encode
from toft.rest.alone.bearer import BadSecret, Bearers, find_role, parse_role_path, read_keys
from toft.rest.alone.settings import BadSetting, from_database, from_environment, read_settings
from toft.rest.errors import RestError
from toft.rest.render.settings import Settings, settings_statement, transaction_settings
from toft.rest.schema.model import Name
from toft.tokens.caller import TokenFault
from toft.tokens.jwt import KeyRing

SECRET = "reallyreallyreallyreallyverysafe"


def test_settings_in_their_order() -> None:
    """The role's own come before the role, whose rights might not allow them."""
    made = transaction_settings(
        schema="api",
        extra_search_path=("public",),
        role="anon",
        role_settings=(("statement_timeout", "3s"),),
        claims_json=b"{}",
        method="GET",
        path="/x",
        headers=[(b"x-a", b"1"), (b"cookie", b"a=b; c=d"), (b"x-a", b"2")],
        more=(("timezone", b"UTC"), ("work_mem", b"1MB")),
    )
    assert made.names == (
        "search_path", "statement_timeout", "role", "request.jwt.claims", "request.method", "request.path",
        "request.headers", "request.cookies", "timezone", "work_mem",
    )  # fmt: skip
    values = dict(zip(made.names, made.values, strict=True))
    assert values["search_path"] == b'"api", "public"'
    assert values["request.headers"] == b'{"x-a":"1"}'
    assert values["request.cookies"] == b'{"a":"b","c":"d"}'


def test_one_statement() -> None:
    """It checks the version first and forbids writing, when both are wanted."""
    plain = settings_statement(Settings(("role",), (b"anon",)), version=None, seen=None, is_read_only=False)
    assert plain.sql == b"SELECT set_config('role', $1, true)"
    checked = settings_statement(Settings(("role",), (b"anon",)), version=b"7", seen=b"s", is_read_only=True)
    assert checked.sql == (
        b"SELECT CASE WHEN pg_catalog.pg_current_snapshot()::pg_catalog.text OPERATOR(pg_catalog.=) $2"
        b" THEN $2 ELSE toft.require_schema_version($1, $2) END,"
        b" set_config('transaction_read_only', 'on', true), set_config('role', $3, true)"
    )
    assert checked.params == (b"7", b"s")
    assert checked.more == encode([b"anon"])
    assert plain.name_key != checked.name_key


def test_configuration() -> None:
    """Names and values as upstream has them; the database's own win; what cannot be read is named."""
    values = from_environment({
        "PGRST_DB_SCHEMAS": "api, other",
        "PGRST_DB_ANON_ROLE": "web",
        "PGRST_DB_TX_END": "rollback-allow-override",
        "PGRST_DB_PRE_REQUEST": "api.check",
        "PGRST_DB_MAX_ROWS": "10",
        "PGRST_JWT_SECRET": SECRET,
        "PGRST_APP_SETTINGS_X": "y",
        "OTHER": "z",
    })  # fmt: skip
    found = read_settings(values)
    assert found.options.schemas == ("api", "other")
    assert found.options.pre_request == Name("api", "check")
    assert (found.options.rolls_back, found.options.allows_transaction_preference) == (True, True)
    assert (found.options.max_rows, found.options.anon_role) == (10, "web")
    assert found.options.app_settings == (("app.settings.x", b"y"),)
    assert read_settings({**values, **from_database({"pgrst.db_max_rows": "5"})}).options.max_rows == 5
    exact = read_settings({**values, "config_json": '{"DbSchemas": ["a,b", "c"]}'})
    assert exact.options.schemas == ("a,b", "c")
    for name, value in (
        ("db_max_rows", "x"),
        ("db_tx_end", "maybe"),
        ("jwt_secret", "short"),
        ("db_schemas", ""),
    ):
        with pytest.raises(BadSetting):
            read_settings({**values, name: value})


def bearers(secret: str = SECRET, anon: str | None = "anon", audience: str | None = None) -> Bearers:
    return Bearers(
        read_keys(secret, is_base64=False),
        anon_role=anon,
        audience=audience,
        role_path=parse_role_path(".role"),
        kept=2,
    )


def test_who_bears_a_token() -> None:
    """The role of a good token, anon without one, and the fault of a bad one."""
    good = KeyRing(SECRET).sign({"role": "web", "aud": "me"})
    assert bearers().identify(f"bearer {good}", 0).role == "web"
    assert bearers().identify(None, 0).role == "anon"
    assert bearers().identify("Basic x", 0).claims == {"role": "anon"}
    with pytest.raises(RestError, match="PGRST302"):
        bearers(anon=None).identify(None, 0)
    faults = {
        "Bearer ": TokenFault.EMPTY,
        "Bearer a.b": TokenFault.PARTS,
        "Bearer a.b.c": TokenFault.CRYPTO,
        f"Bearer {KeyRing('another' * 8).sign({})}": TokenFault.NO_KEY,
        f"Bearer {KeyRing(SECRET).sign({'exp': 1})}": TokenFault.EXPIRED,
        f"Bearer {KeyRing(SECRET).sign({'nbf': 9999})}": TokenFault.NOT_YET_VALID,
        f"Bearer {KeyRing(SECRET).sign({'exp': 'x'})}": TokenFault.CLAIM_TYPE,
    }
    for header, fault in faults.items():
        error = bearers().identify(header, 1000).error
        assert error is not None
        assert error.fault is fault, header
    assert bearers(audience="me").identify(f"Bearer {good}", 0).error is None
    error = bearers(audience="you").identify(f"Bearer {good}", 0).error
    assert error is not None
    assert error.fault is TokenFault.AUDIENCE


def test_the_role_in_the_claims() -> None:
    """A path, perhaps ending in a choice."""
    claims = {"realm": {"roles": ["x", "app_user", "app_admin"]}, "a-b": 5, "role": None}
    assert find_role(claims, parse_role_path(".realm.roles[1]")) == "app_user"
    assert find_role(claims, parse_role_path('.realm.roles[?(@ ==^ "admin")]')) == "app_admin"
    assert find_role(claims, parse_role_path('.realm.roles[?(@ == "none")]')) is None
    assert find_role(claims, parse_role_path('."a-b"')) == "5"
    assert find_role(claims, parse_role_path(".role")) is None
    with pytest.raises(BadSecret):
        parse_role_path("role")
