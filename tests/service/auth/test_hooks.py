"""A project's own functions at Auth's steps."""

from __future__ import annotations

from tests.kit.fix_auth import AuthBackend
from tests.service.auth.test_spine import claims_of
from toft.protocol.worker import AuthHook

BODY = {"email": "ada@example.com", "password": "a-long-enough-one"}


async def install(backend: AuthBackend, name: str, body: str, argument: str = "jsonb") -> None:
    sql = await backend.sql()
    await sql.script(
        f"create or replace function public.hook(event {argument}) returns jsonb language plpgsql"
        f" as $$ {body} $$;"
        f"grant execute on function public.hook({argument}) to supabase_auth_admin;"
        "grant usage on schema public to supabase_auth_admin"
    )
    backend.configure(hooks={name: AuthHook("pg-functions://postgres/public/hook")})


async def test_token_hook_adds_claims(auth_backend: AuthBackend):
    """What it returns replaces the claims, at every token."""
    await install(
        auth_backend,
        "custom_access_token",
        "begin return jsonb_set(event, '{claims,plan}', '\"pro\"'); end",
    )
    session = await auth_backend.sign_up()
    assert claims_of(session["access_token"])["plan"] == "pro"
    assert (await auth_backend.call("GET /user", token=session["access_token"])).status_code == 200
    body = {"refresh_token": session["refresh_token"]}
    again = (await auth_backend.call("POST /token?grant_type=refresh_token", body)).json()
    assert claims_of(again["access_token"])["plan"] == "pro"


async def test_token_hook_must_keep_what_is_needed(auth_backend: AuthBackend):
    """A missing claim is a fault that names it; nobody is half signed up."""
    await install(
        auth_backend, "custom_access_token", "begin return jsonb_build_object('claims', '{}'::jsonb); end"
    )
    answer = await auth_backend.call("POST /signup", BODY)
    assert answer.status_code == 500
    assert "output claims do not conform to the expected schema" in answer.json()["message"]
    await install(auth_backend, "custom_access_token", "begin return '{}'::jsonb; end")
    grant = await auth_backend.call("POST /token?grant_type=password", BODY)
    assert grant.json()["message"] == "output claims field is missing"


async def test_before_user_created(auth_backend: AuthBackend):
    """It sees the user and may refuse, with its own status and words, whatever its argument's type."""
    for argument in ("jsonb", "json"):
        await install(
            auth_backend,
            "before_user_created",
            "begin if event -> 'user' ->> 'email' like '%@example.com' then"
            ' return \'{"error": {"http_code": 403,'
            ' "message": "not from there"}}\'::jsonb; end if; return \'{}\'; end',
            argument,
        )
        answer = await auth_backend.call("POST /signup", BODY)
        assert (answer.status_code, answer.json()["message"]) == (403, "not from there")
    sql = await auth_backend.sql()
    assert await sql.query("select from auth.users") == []
    assert (await auth_backend.call("POST /signup", {**BODY, "email": "a@other.example"})).status_code == 200


async def test_password_attempt(auth_backend: AuthBackend):
    """It is told whether the password was right, and may refuse."""
    await auth_backend.sign_up()
    await install(
        auth_backend,
        "password_verification_attempt",
        "begin return jsonb_build_object('decision', case when (event ->> 'valid')::boolean then 'reject'"
        " else 'continue' end, 'message', 'closed today'); end",
    )
    right = await auth_backend.call("POST /token?grant_type=password", BODY)
    assert right.json() == {"code": "invalid_credentials", "message": "closed today"}
    wrong = await auth_backend.call("POST /token?grant_type=password", {**BODY, "password": "x"})
    assert wrong.json()["message"] == "Invalid login credentials"


async def test_hook_without_rights_names_the_cause(auth_backend: AuthBackend):
    """The log says what was missing; a slow function is cut off."""
    sql = await auth_backend.sql()
    await sql.script("create function public.hook(event jsonb) returns jsonb language sql return event")
    await sql.script("revoke execute on function public.hook from public, supabase_auth_admin")
    auth_backend.configure(hooks={"custom_access_token": AuthHook("pg-functions://postgres/public/hook")})
    answer = await auth_backend.call("POST /signup", BODY)
    assert answer.status_code == 500
    assert "permission denied for function hook" in auth_backend.reports[-1]
    await install(auth_backend, "before_user_created", "begin perform pg_sleep(5); return '{}'; end")
    slow = await auth_backend.call("POST /signup", {**BODY, "email": "bob@example.com"})
    assert slow.status_code == 500
    assert "statement timeout" in auth_backend.reports[-1]
