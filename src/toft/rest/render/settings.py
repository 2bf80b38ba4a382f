"""Pure: the statement that goes before: who asks, what for, under which settings, and of which schema."""

from __future__ import annotations

import functools
from typing import Final

import msgspec

from toft.http.message import HeaderList
from toft.pg.quote import identifier
from toft.pg.wire import Statement, encode
from toft.rest.render.fragment import qualified
from toft.rest.schema.model import Name

_json = msgspec.json.Encoder().encode


class Settings:
    """Names and values, in the order in which they are set; the values also as they are sent."""

    __slots__ = ("encoded", "names", "values")

    def __init__(self, names: tuple[str, ...] = (), values: tuple[bytes, ...] = ()) -> None:
        self.names = names
        self.values = values
        self.encoded = encode(values)


#: A function of the bootstrap: raises TF001 when the schema is another than the plan was made for, and tells
#: the snapshot that was looked at. When nothing was committed since the last look it need not even be called.
#: The names mean what they shall under any search path.
_CHECK: Final = (
    "CASE WHEN pg_catalog.pg_current_snapshot()::pg_catalog.text OPERATOR(pg_catalog.=) $2 THEN $2"
    " ELSE toft.require_schema_version($1, $2) END"
)


@functools.lru_cache(256)
def search_path(schema: str, extra: tuple[str, ...]) -> bytes:
    """The value of search_path: the requested schema, then the configured ones."""
    return ", ".join(identifier(name) for name in (schema, *extra)).encode()


@functools.lru_cache(512)
def _settings_sql(names: tuple[str, ...], checks_version: bool, is_read_only: bool) -> tuple[bytes, bytes]:
    """The SQL and the key of its prepared statement: the same few, again and again."""
    calls = [_CHECK] if checks_version else []
    first = 3 if checks_version else 1
    if is_read_only:
        calls.append("set_config('transaction_read_only', 'on', true)")
    calls += [f"set_config({_literal(name)}, ${number}, true)" for number, name in enumerate(names, first)]
    sql = f"SELECT {', '.join(calls) or 'NULL'}".encode()
    return sql, b"settings\0" + sql


def _literal(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def settings_statement(
    settings: Settings,
    *,
    version: bytes | None,
    seen: bytes | None,
    is_read_only: bool,
) -> Statement:
    """One SELECT that sets everything for the transaction, in this order.

    version: what the schema must be, None where the database cannot tell. seen: the snapshot in which this
    connection last found it so. is_read_only: forbids writing from here on, for want of a BEGIN that does.
    """
    sql, key = _settings_sql(settings.names, version is not None, is_read_only)
    return Statement(sql, () if version is None else (version, seen), key, more=settings.encoded)


@functools.lru_cache(16)
def pre_request(function: Name) -> Statement:
    """The call of the function that may refuse a request."""
    return Statement(f"SELECT {qualified(function)}()".encode(), (), b"pre-request")


def transaction_settings(
    *,
    schema: str,
    extra_search_path: tuple[str, ...],
    role: str,
    role_settings: tuple[tuple[str, str], ...],
    claims_json: bytes,
    method: str,
    path: str,
    headers: HeaderList | None,
    more: tuple[tuple[str, bytes], ...],
) -> Settings:
    """All settings of one request, in the order in which they are made.

    headers: None when nothing in the database can read them. more: time zone, function's, app's.
    """
    about = (schema, extra_search_path, role, role_settings, claims_json, method, path)
    if headers is None:
        return _often(*about, more)
    read = ("request.headers", _json(_joined(headers))), ("request.cookies", _json(_cookies(headers)))
    return _make(*about, (*read, *more))


def _make(
    schema: str,
    extra_search_path: tuple[str, ...],
    role: str,
    role_settings: tuple[tuple[str, str], ...],
    claims_json: bytes,
    method: str,
    path: str,
    more: tuple[tuple[str, bytes], ...],
) -> Settings:
    """The role's own settings come before the role, whose rights might not allow them."""
    pairs = (
        ("search_path", search_path(schema, extra_search_path)),
        *((name, value.encode()) for name, value in role_settings),
        ("role", role.encode()),
        ("request.jwt.claims", claims_json),
        ("request.method", method.encode()),
        ("request.path", path.encode("latin-1", "replace")),
        *more,
    )
    return Settings(tuple(name for name, _ in pairs), tuple(value for _, value in pairs))


#: The same few callers ask for the same few resources.
_often: Final = functools.lru_cache(1024)(_make)


def _joined(headers: HeaderList) -> dict[str, str]:
    """Names and values; the first of a name counts. Cookies are a setting of their own."""
    found: dict[str, str] = {}
    for name, value in headers:
        if name != b"cookie":
            found.setdefault(name.decode("latin-1"), _text(value))
    return found


def _cookies(headers: HeaderList) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        if name == b"cookie":
            for pair in _text(value).split(";"):
                key, _, content = pair.strip().partition("=")
                if key:
                    found.setdefault(key, content)
    return found


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
