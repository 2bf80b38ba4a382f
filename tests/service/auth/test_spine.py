"""Signing up, signing in and out with a password, over real HTTP and a real database."""

from __future__ import annotations

import base64
import json

import pytest

from tests.kit.fix_auth import AuthBackend


def claims_of(token: str) -> dict:
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


async def test_sign_up_gives_a_session(auth_backend: AuthBackend):
    """With autoconfirm a new user is signed in at once, with all claims that policies read."""
    body = {"email": "Ada@Example.com", "password": "a-long-enough-one", "data": {"name": "Ada"}}
    answer = await auth_backend.call("POST /signup", body)
    assert answer.status_code == 200, answer.text
    session = answer.json()
    assert session["token_type"] == "bearer"
    assert session["expires_in"] == 3600
    assert len(session["refresh_token"]) == 12
    user = session["user"]
    assert user["email"] == "ada@example.com"
    assert user["role"] == user["aud"] == "authenticated"
    assert user["app_metadata"] == {"provider": "email", "providers": ["email"]}
    assert user["user_metadata"] == {
        "name": "Ada", "sub": user["id"], "email": "ada@example.com", "email_verified": True,
        "phone_verified": False,
    }  # fmt: skip
    [identity] = user["identities"]
    assert identity["id"] == user["id"]
    assert identity["identity_data"]["email_verified"] is False
    assert "email_confirmed_at" in user
    assert "factors" not in user
    claims = claims_of(session["access_token"])
    assert list(claims) == [
        "iss", "sub", "aud", "exp", "iat", "email", "phone", "app_metadata", "user_metadata", "role", "aal",
        "amr", "session_id", "is_anonymous",
    ]  # fmt: skip
    assert claims["iss"] == auth_backend.url
    assert claims["phone"] == ""
    assert claims["aal"] == "aal1"
    assert claims["amr"] == [{"method": "password", "timestamp": claims["amr"][0]["timestamp"]}]
    assert answer.headers["sb-auth-session-id"] == claims["session_id"]


async def test_password_grant(auth_backend: AuthBackend):
    """The right password signs in, in any case of the address; a wrong one and a stranger get one answer."""
    await auth_backend.sign_up()
    right = {"email": "ADA@example.com", "password": "a-long-enough-one"}
    assert (await auth_backend.call("POST /token?grant_type=password", right)).status_code == 200
    for wrong in ({**right, "password": "nope"}, {**right, "email": "bob@example.com"}):
        answer = await auth_backend.call("POST /token?grant_type=password", wrong)
        assert answer.status_code == 400
        assert answer.json() == {"code": "invalid_credentials", "message": "Invalid login credentials"}
        assert answer.headers["x-sb-error-code"] == "invalid_credentials"
        assert answer.headers["x-supabase-api-version"] == "2024-01-01"


async def test_older_callers_get_the_older_error_shape(auth_backend: AuthBackend):
    """Without the version header the body names the status, the code and `msg`."""
    answer = await auth_backend.call("POST /token?grant_type=x", {}, **{"x-supabase-api-version": ""})
    assert answer.json() == {
        "code": 400,
        "error_code": "invalid_credentials",
        "msg": "unsupported_grant_type",
    }
    assert "x-supabase-api-version" not in answer.headers


async def test_who_may_read_the_user(auth_backend: AuthBackend):
    """The bearer's checks in upstream's order, statuses and words."""
    session = await auth_backend.sign_up()
    keys = auth_backend.keys
    ring = auth_backend.ring
    user_id = session["user"]["id"]
    cases = [
        (session["access_token"], 200, None),
        ("a.b.c", 403, "bad_jwt"),
        (keys.service_role_key, 403, "bad_jwt"),
        (ring.sign({"sub": "x", "role": "authenticated"}), 400, "bad_jwt"),
        (
            ring.sign({"sub": "00000000-0000-0000-0000-000000000001", "role": "authenticated"}),
            403,
            "user_not_found",
        ),
        (
            ring.sign({"sub": user_id, "role": "authenticated", "session_id": user_id}),
            403,
            "session_not_found",
        ),
        (ring.sign({"sub": user_id, "role": "authenticated", "aud": "authenticated"}), 200, None),
        (ring.sign({"sub": user_id, "role": "authenticated", "exp": 1}), 403, "bad_jwt"),
    ]
    for token, status, code in cases:
        answer = await auth_backend.call("GET /user", token=token)
        assert answer.status_code == status, answer.text
        assert answer.headers.get("x-sb-error-code") == code
    alone = await auth_backend.call("GET /user", apikey=keys.anon_key)
    assert alone.status_code == 401
    assert alone.json()["message"] == "This endpoint requires a valid Bearer token"
    publishable = await auth_backend.call("GET /user")
    assert publishable.json() == {"code": "bad_jwt", "message": "invalid claim: missing sub claim"}


@pytest.mark.parametrize(("scope", "survivors"), [("global", 0), ("local", 1), ("others", 1)])
async def test_log_out(auth_backend: AuthBackend, scope: str, survivors: int):
    """A scope ends all sessions, this one, or the others; the ended access token fails at once."""
    first = await auth_backend.sign_up()
    grant = {"email": "ada@example.com", "password": "a-long-enough-one"}
    second = (await auth_backend.call("POST /token?grant_type=password", grant)).json()
    answer = await auth_backend.call(f"POST /logout?scope={scope}", token=first["access_token"])
    assert (answer.status_code, answer.content) == (204, b"")
    statuses = [
        (await auth_backend.call("GET /user", token=session["access_token"])).status_code
        for session in (first, second)
    ]
    assert statuses.count(200) == survivors
    assert statuses == {"global": [403, 403], "local": [403, 200], "others": [200, 403]}[scope]
    strange = await auth_backend.call("POST /logout?scope=everyone", token=second["access_token"])
    assert strange.status_code == 400


async def test_anonymous_sign_in(auth_backend: AuthBackend):
    """Off by default; when on, a user without address, and no identity."""
    off = await auth_backend.call("POST /signup", {"data": {"theme": "dark"}})
    assert (off.status_code, off.json()["code"]) == (422, "anonymous_provider_disabled")
    auth_backend.configure(enable_anonymous_sign_ins=True)
    session = (await auth_backend.call("POST /signup", {"data": {"theme": "dark"}})).json()
    user = session["user"]
    assert user["is_anonymous"] is True
    assert (user["email"], user["identities"], user["app_metadata"]) == ("", [], {})
    assert user["user_metadata"] == {"theme": "dark"}
    assert claims_of(session["access_token"])["amr"][0]["method"] == "anonymous"


async def test_anonymous_user_becomes_permanent(auth_backend: AuthBackend):
    """With autoconfirm an address is set at once; then a password may follow."""
    auth_backend.configure(enable_anonymous_sign_ins=True)
    session = (await auth_backend.call("POST /signup", {})).json()
    token = session["access_token"]
    early = await auth_backend.call("PUT /user", {"password": "a-long-enough-one"}, token=token)
    assert early.status_code == 422
    changed = await auth_backend.call("PUT /user", {"email": "ada@example.com"}, token=token)
    assert changed.status_code == 200, changed.text
    user = changed.json()
    assert user["is_anonymous"] is False
    assert user["app_metadata"]["providers"] == ["email"]
    assert (
        await auth_backend.call("PUT /user", {"password": "a-long-enough-one"}, token=token)
    ).status_code == 200
    grant = {"email": "ada@example.com", "password": "a-long-enough-one"}
    assert (await auth_backend.call("POST /token?grant_type=password", grant)).status_code == 200


async def test_sign_up_refusals(auth_backend: AuthBackend):
    """Each mistake has its status, code and words."""
    good = {"email": "ada@example.com", "password": "a-long-enough-one"}
    cases = [
        ({**good, "password": "short"}, 422, "weak_password"),
        ({**good, "password": ""}, 400, "validation_failed"),
        ({**good, "password": "x" * 73}, 400, "validation_failed"),
        ({**good, "email": "no address"}, 400, "validation_failed"),
        ({**good, "phone": "1234567"}, 400, "validation_failed"),
        ({"phone": "1234567", "password": "a-long-enough-one"}, 400, "phone_provider_disabled"),
        ({**good, "code_challenge": "x"}, 400, "validation_failed"),
        ({**good, "data": "text"}, 400, "bad_json"),
        ({**good, "data": {"a": "\0"}}, 400, "bad_json"),
    ]
    for body, status, code in cases:
        answer = await auth_backend.call("POST /signup", body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    weak = await auth_backend.call("POST /signup", {**good, "password": "short"})
    assert weak.json()["weak_password"] == {"reasons": ["length"]}
    await auth_backend.sign_up()
    again = await auth_backend.call("POST /signup", {"email": "ADA@example.com", "password": "another-one"})
    assert (again.status_code, again.json()) == (
        422, {"code": "user_already_exists", "message": "User already registered"},
    )  # fmt: skip
    auth_backend.configure(enable_signup=False)
    assert (await auth_backend.call("POST /signup", good)).json()["code"] == "signup_disabled"


async def test_bad_bodies_and_routes(auth_backend: AuthBackend):
    """What is no JSON, too long, or nowhere, is told so."""
    assert auth_backend.http is not None
    for raw in (b"", b"{", b"[]", b"\xff", b'"x"'):
        answer = await auth_backend.http.post(auth_backend.url + "/signup", content=raw)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_json")
    huge = await auth_backend.http.post(auth_backend.url + "/signup", content=b"x" * (1024 * 1024 + 1))
    assert (huge.status_code, huge.json()["code"]) == (413, "request_entity_too_large")
    assert (await auth_backend.call("GET /nowhere")).status_code == 404
    assert (await auth_backend.call("PATCH /user")).status_code == 405


async def test_open_information(auth_backend: AuthBackend):
    """Health, settings and the key set."""
    assert (await auth_backend.call("GET /health")).json()["name"] == "GoTrue"
    settings = (await auth_backend.call("GET /settings")).json()
    assert settings["external"]["email"] is True
    assert settings["mailer_autoconfirm"] is True
    keys = (await auth_backend.call("GET /.well-known/jwks.json")).json()["keys"]
    assert [key["alg"] for key in keys] == ["ES256"]


async def test_failing_trigger_undoes_the_sign_up_and_names_the_cause(auth_backend: AuthBackend):
    """The classic: a trigger that may not write. The client gets upstream's words, the log the truth."""
    sql = await auth_backend.sql()
    await sql.script(
        "create table public.profiles (id uuid primary key);"
        "create function public.handle_new_user() returns trigger language plpgsql as $$"
        "begin insert into public.profiles (id) values (new.id); return new; end $$;"
        "create trigger on_auth_user_created after insert on auth.users"
        " for each row execute function public.handle_new_user();"
    )
    body = {"email": "ada@example.com", "password": "a-long-enough-one"}
    answer = await auth_backend.call("POST /signup", body)
    assert answer.status_code == 500
    assert answer.json() == {"code": "unexpected_failure", "message": "Database error saving new user"}
    assert "x-toft-cause" not in answer.headers
    [report] = auth_backend.reports
    assert "permission denied for table profiles" in report
    assert "42501" in report
    assert "handle_new_user() line 1" in report
    told = await auth_backend.admin("POST /signup", body)
    assert "permission denied" in told.headers["x-toft-cause"]
    assert await sql.query("select from auth.users") == []
    await sql.script("alter function public.handle_new_user() security definer set search_path = ''")
    assert (await auth_backend.call("POST /signup", body)).status_code == 200
    assert len(await sql.query("select from public.profiles")) == 1


async def test_error_that_a_trigger_raises_is_passed_on_in_the_older_shape(auth_backend: AuthBackend):
    """Older clients see the trigger's own words; PTxyz names the status."""
    sql = await auth_backend.sql()
    await sql.script(
        "create function public.refuse() returns trigger language plpgsql as $$"
        "begin raise exception 'not on Sundays' using errcode = 'PT418', hint = 'try on Monday'; end $$;"
        "create trigger refuse before insert on auth.users for each row execute function public.refuse();"
    )
    body = {"email": "ada@example.com", "password": "a-long-enough-one"}
    answer = await auth_backend.call("POST /signup", body, **{"x-supabase-api-version": ""})
    assert answer.status_code == 418
    assert answer.json() == {
        "code": "PT418",
        "message": "not on Sundays",
        "hint": "try on Monday",
        "detail": "",
    }


SEEDS = [
    "instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, raw_app_meta_data,"
    " raw_user_meta_data, created_at, updated_at) values ('00000000-0000-0000-0000-000000000000',"
    " gen_random_uuid(), 'authenticated', 'authenticated', 'seed@example.com', {hash}, now(),"
    ' \'{{"provider":"email","providers":["email"]}}\', \'{{}}\', now(), now())',
    "id, aud, role, email, encrypted_password, email_confirmed_at) values (gen_random_uuid(),"
    " 'authenticated', 'authenticated', 'Seed@Example.com', {hash}, now())",
]


@pytest.mark.parametrize("row", SEEDS)
@pytest.mark.parametrize(
    "hashed",
    [
        "crypt('from-a-seed', gen_salt('bf'))",
        "crypt('from-a-seed', gen_salt('bf', 8))",
        "replace(crypt('from-a-seed', gen_salt('bf')), '$2a$', '$2y$')",
        "'$argon2id$v=19$m=65536,t=3,p=4$6kQkrpDashZowf1wDh4MQQ$wtgb76CuVcaN2ccp7nlFyCHjqSp8YsY2QOT8JfjOd/Q'",
    ],
)
async def test_seeded_users_sign_in(auth_backend: AuthBackend, row: str, hashed: str):
    """Rows that seeds leave, NULL tokens and NULL instance included, sign in and read themselves."""
    sql = await auth_backend.sql()
    await sql.script(f"insert into auth.users ({row.format(hash=hashed)}")
    grant = {"email": "seed@example.com", "password": "from-a-seed"}
    answer = await auth_backend.call("POST /token?grant_type=password", grant)
    assert answer.status_code == 200, answer.text
    token = answer.json()["access_token"]
    assert (await auth_backend.call("GET /user", token=token)).status_code == 200
    listed = (await auth_backend.admin("GET /admin/users")).json()["users"]
    assert [user["email"].lower() for user in listed] == ["seed@example.com"]
