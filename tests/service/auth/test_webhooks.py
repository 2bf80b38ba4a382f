"""Hooks over HTTP, and the hooks that take over what Auth would send."""

from __future__ import annotations

import asyncio
import base64

import pytest
from standardwebhooks.webhooks import Webhook

from tests.kit.fix_auth import AuthBackend
from tests.kit.fix_webhooks import Endpoint, say
from tests.service.auth.test_hooks import install
from tests.service.auth.test_spine import claims_of
from toft.protocol.worker import AuthHook

KEY = base64.b64encode(b"a key of thirty-two bytes, in all").decode()
SECRETS = ("v1,whsec_" + base64.b64encode(b"the next one").decode(), f"v1,whsec_{KEY}")
BODY = {"email": "ada@example.com", "password": "a-long-enough-one"}


def listen_to(backend: AuthBackend, name: str, endpoint: Endpoint, **changes: object) -> None:
    backend.configure(hooks={name: AuthHook(endpoint.url, SECRETS)}, **changes)


async def test_token_hook_over_http(auth_backend: AuthBackend, endpoint: Endpoint):
    """Its answer replaces the claims; the call is signed as Standard Webhooks, with each secret."""
    listen_to(auth_backend, "custom_access_token", endpoint)
    endpoint.answers = lambda event: say({"claims": {**event["claims"], "plan": "pro"}})
    session = await auth_backend.sign_up()
    assert claims_of(session["access_token"])["plan"] == "pro"
    headers, body = endpoint.got[0]
    for secret in SECRETS:
        assert Webhook(secret.removeprefix("v1,")).verify(body, headers)
    assert endpoint.payloads[0]["metadata"]["name"] == "custom-access-token"
    assert endpoint.payloads[0]["authentication_method"] == "password"


async def test_a_refusal_over_http(auth_backend: AuthBackend, endpoint: Endpoint):
    """Status and words are the hook's; nobody is half signed up; an empty answer agrees."""
    listen_to(auth_backend, "before_user_created", endpoint)
    endpoint.answers = lambda _: say({"error": {"http_code": 418, "message": "no tea"}})
    refused = await auth_backend.call("POST /signup", BODY)
    assert (refused.status_code, refused.json()["message"]) == (418, "no tea")
    assert await (await auth_backend.sql()).query("select from auth.users") == []
    endpoint.answers = lambda _: say(status=204)
    assert (await auth_backend.call("POST /signup", BODY)).status_code == 200


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (say({}, 500), 500, "unexpected_failure"),
        (say({}, 401), 500, "unexpected_failure"),
        (say({}, kind="text/html"), 400, "hook_payload_invalid_content_type"),
        (say([]), 500, "unexpected_failure"),
        (say({"x": "y" * 300_000}), 422, "hook_payload_over_size_limit"),
    ],
)
async def test_answers_that_make_no_sense(
    auth_backend: AuthBackend, endpoint: Endpoint, answer, status: int, code: str
):
    """Each is told with the code that SDKs know."""
    listen_to(auth_backend, "before_user_created", endpoint)
    endpoint.answers = lambda _: answer
    refused = await auth_backend.call("POST /signup", BODY)
    assert (refused.status_code, refused.json()["code"]) == (status, code)


async def test_tries(auth_backend: AuthBackend, endpoint: Endpoint):
    """A hook that asks to be tried again is, three times in all; one that is away or slow is given up."""
    listen_to(auth_backend, "before_user_created", endpoint)
    endpoint.answers = lambda _: say({}, 503, retry_after="true") if len(endpoint.got) < 3 else say({})
    assert (await auth_backend.call("POST /signup", BODY)).status_code == 200
    assert len(endpoint.got) == 3
    assert len({headers["webhook-id"] for headers, _ in endpoint.got}) == 1
    away = AuthHook("http://127.0.0.1:1/hook", SECRETS)
    auth_backend.configure(hooks={"before_user_created": away})
    lost = await auth_backend.call("POST /signup", {**BODY, "email": "b@example.com"})
    assert (lost.status_code, lost.json()["code"]) == (422, "hook_timeout_after_retry")
    assert "127.0.0.1:1" in auth_backend.reports[-1]
    auth_backend.configure(hooks={"before_user_created": AuthHook("http://hooks.example/x", SECRETS)})
    plain = await auth_backend.call("POST /signup", {**BODY, "email": "b@example.com"})
    assert "without TLS" in plain.json()["message"]


async def test_a_slow_hook(auth_backend: AuthBackend, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch):
    """It has its time and no more."""
    monkeypatch.setattr("toft.auth.webhooks._LONGEST_SECONDS", 0.05)
    never = asyncio.Event()

    async def wait(_: object):
        await never.wait()

    listen_to(auth_backend, "before_user_created", endpoint)
    endpoint.answers = wait
    late = await auth_backend.call("POST /signup", BODY)
    assert (late.status_code, late.json()["code"]) == (422, "hook_timeout")
    never.set()


async def test_after_user_created(auth_backend: AuthBackend, endpoint: Endpoint):
    """It hears of users who are there for good, by either kind of hook; what it answers does not matter."""
    listen_to(auth_backend, "after_user_created", endpoint)
    endpoint.answers = lambda _: say({"error": {"http_code": 500, "message": "never mind"}})
    session = await auth_backend.sign_up()
    assert [event["user"]["id"] for event in endpoint.payloads] == [session["user"]["id"]]
    sql = await auth_backend.sql()
    await sql.script(
        "create table public.heard (email text); grant insert on public.heard to supabase_auth_admin"
    )
    body = (
        "begin if not exists (select from auth.users where email = event -> 'user' ->> 'email') then"
        " raise 'too early'; end if;"
        " insert into public.heard values (event -> 'user' ->> 'email'); return '{}'; end"
    )
    await install(auth_backend, "after_user_created", body)
    await auth_backend.sign_up("bob@example.com")
    assert await sql.query("table public.heard") == [["bob@example.com"]]
    await sql.script("drop table public.heard")
    await auth_backend.sign_up("eve@example.com")
    assert "public.heard" in auth_backend.reports[-1]


async def test_send_email(auth_backend: AuthBackend, endpoint: Endpoint):
    """The project writes its mails: what it is given confirms, resets and changes; nothing else is sent."""
    listen_to(auth_backend, "send_email", endpoint, email_enable_confirmations=True)
    await auth_backend.call("POST /signup", BODY)
    data = endpoint.payloads[-1]["email_data"]
    assert (data["email_action_type"], endpoint.payloads[-1]["user"]["email"]) == (
        "signup",
        "ada@example.com",
    )
    proof = {"type": "signup", "email": "ada@example.com", "token": data["token"]}
    session = (await auth_backend.call("POST /verify", proof)).json()
    auth_backend.clock.turn(minutes=1)
    await auth_backend.call("POST /recover", {"email": "ada@example.com"})
    data = endpoint.payloads[-1]["email_data"]
    assert data["email_action_type"] == "recovery"
    by_hash = {"type": "recovery", "token_hash": data["token_hash"]}
    assert "access_token" in (await auth_backend.call("POST /verify", by_hash)).json()
    before = len(endpoint.got)
    changed = await auth_backend.call(
        "PUT /user", {"email": "new@example.com"}, token=session["access_token"]
    )
    assert changed.status_code == 200, changed.text
    assert len(endpoint.got) == before + 1
    data = endpoint.payloads[-1]["email_data"]
    assert data["old_email"] == "ada@example.com"
    for address, token in (("ada@example.com", data["token"]), ("new@example.com", data["token_new"])):
        proof = {"type": "email_change", "email": address, "token": token}
        assert (await auth_backend.call("POST /verify", proof)).status_code == 200
    for name in ("token_hash", "token_hash_new"):
        assert len(data[name]) == 56
    assert auth_backend.outbox.messages == []


async def test_send_sms(auth_backend: AuthBackend, endpoint: Endpoint):
    """So are text messages, by a Postgres function too; a hook that fails undoes the sign-up."""
    listen_to(auth_backend, "send_sms", endpoint, sms_enable_signup=True, sms_enable_confirmations=True)
    body = {"phone": "+15550100", "password": "a-long-enough-one"}
    assert (await auth_backend.call("POST /signup", body)).status_code == 200
    told = endpoint.payloads[-1]["sms"]
    proof = {"type": "sms", "phone": "+15550100", "token": told["otp"]}
    assert "access_token" in (await auth_backend.call("POST /verify", proof)).json()
    await install(
        auth_backend,
        "send_sms",
        "begin return json_build_object('error', json_build_object('http_code', 429, 'message',"
        " 'to ' || (event -> 'sms' ->> 'phone'))); end",
    )
    refused = await auth_backend.call("POST /signup", {**body, "phone": "+15550101"})
    assert (refused.status_code, refused.json()["message"]) == (429, "to 15550101")
    assert len(await (await auth_backend.sql()).query("select from auth.users")) == 1
    assert auth_backend.outbox.messages == []
