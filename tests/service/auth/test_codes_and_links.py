"""Mails, text messages and what follows from answering them."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.kit.fix_auth import AuthBackend
from tests.service.auth.test_spine import claims_of

ADA = "ada@example.com"
PASSWORD = "a-long-enough-one"
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
PKCE = {"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "s256"}


async def follow(backend: AuthBackend, link: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Where a link leads: address, query and fragment."""
    assert backend.http is not None
    answer = await backend.http.get(link, headers={"apikey": ""})
    assert answer.status_code == 303, answer.text
    parts = urlsplit(answer.headers["location"])

    def flat(text: str) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}

    return f"{parts.scheme}://{parts.netloc}{parts.path}", flat(parts.query), flat(parts.fragment)


async def unconfirmed(backend: AuthBackend, **more) -> dict:
    backend.configure(email_enable_confirmations=True, sms_enable_confirmations=True)
    answer = await backend.call("POST /signup", {"email": ADA, "password": PASSWORD, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_sign_up_is_confirmed_by_link(auth_backend: AuthBackend):
    """A user without session first; the link confirms, signs in by the fragment, and works once."""
    user = await unconfirmed(auth_backend)
    assert "access_token" not in user
    assert "confirmation_sent_at" in user
    assert user["identities"][0]["identity_data"]["email_verified"] is False
    grant = {"email": ADA, "password": PASSWORD}
    early = await auth_backend.call("POST /token?grant_type=password", grant)
    assert early.json()["code"] == "email_not_confirmed"
    link = auth_backend.outbox.last_link(ADA)
    address, query, fragment = await follow(auth_backend, link)
    assert (address, query) == ("http://127.0.0.1:3000", {})
    assert list(fragment) == [
        "access_token", "expires_at", "expires_in", "refresh_token", "sb", "token_type", "type",
    ]  # fmt: skip
    assert fragment["type"] == "signup"
    assert claims_of(fragment["access_token"])["amr"][0]["method"] == "otp"
    me = (await auth_backend.call("GET /user", token=fragment["access_token"])).json()
    assert me["user_metadata"]["email_verified"] is True
    assert me["identities"][0]["identity_data"]["email_verified"] is True
    _, _, again = await follow(auth_backend, link)
    assert again == {
        "error": "access_denied", "error_code": "otp_expired", "sb": "",
        "error_description": "Email link is invalid or has expired",
    }  # fmt: skip


async def test_sign_up_again(auth_backend: AuthBackend):
    """While unconfirmed the mail is sent again and the password stays; afterwards nobody can tell."""
    first = await unconfirmed(auth_backend)
    haste = await auth_backend.call("POST /signup", {"email": ADA, "password": "another-one"})
    assert (haste.status_code, haste.json()["code"]) == (429, "over_email_send_rate_limit")
    assert haste.json()["message"].startswith("For security purposes, you can only request this after ")
    auth_backend.clock.turn(seconds=2)
    second = await auth_backend.call("POST /signup", {"email": ADA, "password": "another-one"})
    assert second.json()["id"] == first["id"]
    await follow(auth_backend, auth_backend.outbox.last_link(ADA))
    grant = {"email": ADA, "password": "another-one"}
    assert (await auth_backend.call("POST /token?grant_type=password", grant)).status_code == 400
    sent = len(auth_backend.outbox.messages)
    fake = (await auth_backend.call("POST /signup", {"email": ADA, "password": "yet-another"})).json()
    assert fake["id"] != first["id"]
    assert fake["identities"] == []
    assert set(fake) == set(second.json())
    assert len(auth_backend.outbox.messages) == sent


@pytest.mark.parametrize("kind", ["signup", "email"])
async def test_code_typed_in(auth_backend: AuthBackend, kind: str):
    """The code of a mail gives a session; a wrong, late or foreign one gives one answer."""
    await unconfirmed(auth_backend)
    code = auth_backend.outbox.last_code(ADA)
    refusal = {"code": "otp_expired", "message": "Token has expired or is invalid"}
    wrong = f"{(int(code) + 1) % 1000000:06}"
    for body in ({"email": ADA, "token": wrong}, {"email": "bob@example.com", "token": code}):
        answer = await auth_backend.call("POST /verify", {"type": kind, **body})
        assert (answer.status_code, answer.json()) == (403, refusal)
    auth_backend.clock.turn(seconds=3601)
    late = await auth_backend.call("POST /verify", {"type": kind, "email": ADA, "token": code})
    assert late.json() == refusal
    auth_backend.clock.turn(seconds=-3601)
    right = await auth_backend.call("POST /verify", {"type": kind, "email": ADA.upper(), "token": code})
    assert right.status_code == 200, right.text
    assert right.json()["user"]["email_confirmed_at"]
    again = await auth_backend.call("POST /verify", {"type": kind, "email": ADA, "token": code})
    assert again.json() == refusal


async def test_token_hash(auth_backend: AuthBackend):
    """What the link carries may be posted, with its type and nothing else."""
    await unconfirmed(auth_backend)
    token_hash = parse_qs(urlsplit(auth_backend.outbox.last_link(ADA)).query)["token"][0]
    for extra in ({"email": ADA}, {"phone": "15550100"}, {"redirect_to": "https://x.example"}):
        answer = await auth_backend.call("POST /verify", {"type": "email", "token_hash": token_hash, **extra})
        assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    for body in ({}, {"type": "email"}, {"token_hash": token_hash}, {"type": "x", "token_hash": "y"}):
        assert (await auth_backend.call("POST /verify", body)).json()["code"] == "validation_failed"
    wrong_kind = await auth_backend.call("POST /verify", {"type": "recovery", "token_hash": token_hash})
    assert wrong_kind.json()["message"] == "Email link is invalid or has expired"
    right = await auth_backend.call("POST /verify", {"type": "email", "token_hash": token_hash})
    assert right.status_code == 200


async def test_magic_link_and_otp(auth_backend: AuthBackend):
    """A stranger is signed up, a known user gets a link; `create_user: false` makes nobody."""
    refused = await auth_backend.call("POST /otp", {"email": ADA, "create_user": False})
    assert (refused.status_code, refused.json()["code"]) == (422, "otp_disabled")
    body = {"email": ADA, "data": {"name": "Ada"}}
    assert (await auth_backend.call("POST /otp", body)).json() == {}
    code = auth_backend.outbox.last_code(ADA)
    session = await auth_backend.call("POST /verify", {"type": "email", "email": ADA, "token": code})
    assert session.json()["user"]["user_metadata"]["name"] == "Ada"
    auth_backend.clock.turn(seconds=2)
    link = "POST /magiclink?redirect_to=http://127.0.0.1:5173/x?y=1"
    assert (await auth_backend.call(link, {"email": ADA})).json() == {}
    address, query, fragment = await follow(auth_backend, auth_backend.outbox.last_link(ADA))
    assert (address, query, fragment["type"]) == ("http://127.0.0.1:5173/x", {"y": "1"}, "magiclink")
    for bad in ({}, {"email": ADA, "phone": "1555"}):
        assert (await auth_backend.call("POST /otp", bad)).status_code == 400
    auth_backend.clock.turn(seconds=2)
    await auth_backend.call("POST /magiclink?redirect_to=https://evil.example", {"email": ADA})
    assert "redirect_to=http://127.0.0.1:3000" in auth_backend.outbox.last_link(ADA)


async def test_only_the_last_mail_works(auth_backend: AuthBackend):
    """A newer mail replaces the older; success clears all that was sent."""
    await auth_backend.sign_up()
    await auth_backend.call("POST /recover", {"email": ADA})
    first = auth_backend.outbox.last_code(ADA)
    auth_backend.clock.turn(seconds=2)
    await auth_backend.call("POST /otp", {"email": ADA})
    second = auth_backend.outbox.last_code(ADA)
    assert first != second
    old = await auth_backend.call("POST /verify", {"type": "recovery", "email": ADA, "token": first})
    assert old.status_code == 403
    new = await auth_backend.call("POST /verify", {"type": "magiclink", "email": ADA, "token": second})
    assert new.status_code == 200
    sql = await auth_backend.sql()
    assert await sql.query("select from auth.one_time_tokens") == []


async def test_recovery(auth_backend: AuthBackend):
    """The answer does not tell who is known; the link's session may set a password."""
    assert (await auth_backend.call("POST /recover", {"email": "bob@example.com"})).json() == {}
    assert auth_backend.outbox.messages == []
    await auth_backend.sign_up()
    assert (await auth_backend.call("POST /recover", {"email": ADA})).json() == {}
    message = auth_backend.outbox.last(ADA)
    assert message.subject == "Reset your password"
    assert "/verify?token=" in message.html
    _, _, fragment = await follow(auth_backend, auth_backend.outbox.last_link(ADA))
    assert fragment["type"] == "recovery"
    token = fragment["access_token"]
    assert (
        await auth_backend.call("PUT /user", {"password": "quite-new-one"}, token=token)
    ).status_code == 200
    grant = {"email": ADA, "password": "quite-new-one"}
    assert (await auth_backend.call("POST /token?grant_type=password", grant)).status_code == 200


async def test_pkce(auth_backend: AuthBackend):
    """The link gives a code; the code and the verifier give a session, once and in time."""
    await unconfirmed(auth_backend, **PKCE)
    link = auth_backend.outbox.last_link(ADA)
    assert "token=pkce_" in link
    _, query, fragment = await follow(auth_backend, link)
    assert fragment == {}
    exchange = {"auth_code": query["code"], "code_verifier": VERIFIER}
    wrong = await auth_backend.call("POST /token?grant_type=pkce", {**exchange, "code_verifier": "x" * 43})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "bad_code_verifier")
    assert wrong.json()["message"] == "code challenge does not match previously saved code verifier"
    missing = await auth_backend.call("POST /token?grant_type=pkce", {"auth_code": query["code"]})
    assert missing.json()["code"] == "validation_failed"
    right = await auth_backend.call("POST /token?grant_type=pkce", exchange)
    assert right.status_code == 200, right.text
    assert claims_of(right.json()["access_token"])["amr"][0]["method"] == "email/signup"
    again = await auth_backend.call("POST /token?grant_type=pkce", exchange)
    assert (again.status_code, again.json()["code"]) == (404, "flow_state_not_found")
    await auth_backend.call("POST /recover", {"email": ADA, **PKCE})
    _, query, _ = await follow(auth_backend, auth_backend.outbox.last_link(ADA))
    auth_backend.clock.turn(seconds=301)
    late = await auth_backend.call(
        "POST /token?grant_type=pkce", {"auth_code": query["code"], "code_verifier": VERIFIER}
    )
    assert (late.status_code, late.json()["code"]) == (422, "flow_state_expired")


async def test_expired_pkce_link_tells_in_query_and_fragment(auth_backend: AuthBackend):
    """A server that renders sees the query only."""
    await unconfirmed(auth_backend, **PKCE)
    auth_backend.clock.turn(seconds=3601)
    _, query, fragment = await follow(auth_backend, auth_backend.outbox.last_link(ADA))
    assert query["error_code"] == fragment["error_code"] == "otp_expired"


async def test_code_of_a_pkce_mail_may_be_typed_in(auth_backend: AuthBackend):
    """It gives a session directly."""
    await unconfirmed(auth_backend, **PKCE)
    code = auth_backend.outbox.last_code(ADA)
    answer = await auth_backend.call("POST /verify", {"type": "signup", "email": ADA, "token": code})
    assert answer.status_code == 200


async def test_change_of_email_by_both_addresses(auth_backend: AuthBackend):
    """Both have to agree, in either order; then it changes, and the identity with it."""
    token = (await auth_backend.sign_up())["access_token"]
    new = "new@example.com"
    changed = await auth_backend.call("PUT /user", {"email": new}, token=token)
    assert changed.json()["email"] == ADA
    assert changed.json()["new_email"] == new
    assert {message.to for message in auth_backend.outbox.messages} == {ADA, new}
    half = await auth_backend.call(
        "POST /verify", {"type": "email_change", "email": new, "token": auth_backend.outbox.last_code(new)}
    )
    assert half.status_code == 200
    assert half.json() == {
        "msg": "Confirmation link accepted. Please proceed to confirm link sent to the other email",
        "code": "200",
    }
    _, _, fragment = await follow(auth_backend, auth_backend.outbox.last_link(ADA))
    assert fragment["type"] == "email_change"
    user = (await auth_backend.call("GET /user", token=fragment["access_token"])).json()
    assert user["email"] == new
    assert "new_email" not in user
    assert user["identities"][0]["identity_data"]["email"] == new
    grant = {"email": new, "password": PASSWORD}
    assert (await auth_backend.call("POST /token?grant_type=password", grant)).status_code == 200


async def test_change_of_email_by_one_address(auth_backend: AuthBackend):
    """Without double confirmation the new address alone is asked."""
    auth_backend.configure(email_double_confirm_changes=False)
    token = (await auth_backend.sign_up())["access_token"]
    await auth_backend.call("PUT /user", {"email": "new@example.com"}, token=token)
    [message] = auth_backend.outbox.messages
    assert message.to == "new@example.com"
    await follow(auth_backend, auth_backend.outbox.last_link("new@example.com"))
    assert (await auth_backend.call("GET /user", token=token)).json()["email"] == "new@example.com"
    await auth_backend.sign_up("bob@example.com")
    taken = await auth_backend.call("PUT /user", {"email": "bob@example.com"}, token=token)
    assert (taken.status_code, taken.json()["code"]) == (422, "email_exists")


async def test_first_of_two_links_says_so(auth_backend: AuthBackend):
    """The browser comes back with a message instead of a session."""
    token = (await auth_backend.sign_up())["access_token"]
    await auth_backend.call("PUT /user", {"email": "new@example.com"}, token=token)
    _, _, fragment = await follow(auth_backend, auth_backend.outbox.last_link("new@example.com"))
    assert fragment["message"].startswith("Confirmation link accepted.")
    assert "access_token" not in fragment


async def test_phone(auth_backend: AuthBackend):
    """Codes by text message: sign up, sign in, change, and numbers with a fixed code for tests."""
    auth_backend.configure(
        sms_enable_signup=True, sms_enable_confirmations=True, sms_test_otp={"15550199": "123456"}
    )
    signed = await auth_backend.call("POST /signup", {"phone": "+1 555 0100", "password": PASSWORD})
    assert "access_token" not in signed.json()
    early = await auth_backend.call(
        "POST /token?grant_type=password", {"phone": "15550100", "password": PASSWORD}
    )
    assert early.json()["code"] == "phone_not_confirmed"
    code = auth_backend.outbox.last_code("15550100")
    verified = await auth_backend.call("POST /verify", {"type": "sms", "phone": "+15550100", "token": code})
    assert verified.status_code == 200, verified.text
    token = verified.json()["access_token"]
    await auth_backend.call("PUT /user", {"phone": "+1 555 0101"}, token=token)
    change = {"type": "phone_change", "phone": "15550101", "token": auth_backend.outbox.last_code("15550101")}
    changed = await auth_backend.call("POST /verify", change)
    assert changed.json()["user"]["phone"] == "15550101"
    sent = len(auth_backend.outbox.messages)
    known = await auth_backend.call("POST /otp", {"phone": "+15550199"})
    assert known.json() == {"message_id": "test-otp"}
    assert len(auth_backend.outbox.messages) == sent
    body = {"type": "sms", "phone": "+15550199", "token": "123456"}
    assert (await auth_backend.call("POST /verify", body)).status_code == 200
    auth_backend.configure(sms_provider="none")
    nobody = await auth_backend.call("POST /otp", {"phone": "+15550177"})
    assert nobody.json()["message"] == "Unable to get SMS provider"
    sql = await auth_backend.sql()
    assert await sql.query("select from auth.users where phone = '15550177'") == []


async def test_resend(auth_backend: AuthBackend):
    """Only what waits for an answer is sent again; strangers get the same answer and no mail."""
    await unconfirmed(auth_backend)
    auth_backend.clock.turn(seconds=2)
    assert (await auth_backend.call("POST /resend", {"type": "signup", "email": ADA})).json() == {}
    assert len(auth_backend.outbox.messages) == 2
    stranger = {"type": "signup", "email": "bob@example.com"}
    assert (await auth_backend.call("POST /resend", stranger)).json() == {}
    assert len(auth_backend.outbox.messages) == 2
    for bad in ({"type": "recovery", "email": ADA}, {"type": "signup"}, {"type": "sms", "email": ADA}):
        assert (await auth_backend.call("POST /resend", bad)).status_code == 400


async def test_reauthentication(auth_backend: AuthBackend):
    """An old session changes its password only with a fresh code."""
    auth_backend.configure(email_secure_password_change=True)
    token = (await auth_backend.sign_up())["access_token"]
    sql = await auth_backend.sql("supabase_auth_admin")
    await sql.script("update auth.sessions set created_at = now() - interval '25 hours'")
    body = {"password": "quite-new-one"}
    needed = await auth_backend.call("PUT /user", body, token=token)
    assert (needed.status_code, needed.json()["code"]) == (400, "reauthentication_needed")
    assert (await auth_backend.call("GET /reauthenticate", token=token)).json() == {}
    nonce = auth_backend.outbox.last_code(ADA)
    assert nonce in auth_backend.outbox.last(ADA).subject
    wrong = await auth_backend.call("PUT /user", {**body, "nonce": "000000x"}, token=token)
    assert (wrong.status_code, wrong.json()["code"]) == (422, "reauthentication_not_valid")
    assert (await auth_backend.call("PUT /user", {**body, "nonce": nonce}, token=token)).status_code == 200
    same = await auth_backend.call("PUT /user", {**body, "nonce": nonce}, token=token)
    assert same.json()["code"] == "same_password"


async def test_generate_link(auth_backend: AuthBackend):
    """Nothing is sent; the hash works at once; a magic link for a stranger signs up."""
    made = await auth_backend.admin(
        "POST /admin/generate_link",
        {"type": "signup", "email": ADA, "password": PASSWORD, "data": {"a": 1}},
    )
    assert made.status_code == 200, made.text
    body = made.json()
    assert auth_backend.outbox.messages == []
    assert body["user_metadata"] == {"a": 1}
    assert body["verification_type"] == "signup"
    assert body["action_link"].startswith(
        f"{auth_backend.url}/verify?token={body['hashed_token']}&type=signup"
    )
    used = await auth_backend.call("POST /verify", {"type": "signup", "token_hash": body["hashed_token"]})
    assert used.status_code == 200
    stranger = {"type": "magiclink", "email": "bob@example.com"}
    assert (await auth_backend.admin("POST /admin/generate_link", stranger)).json()[
        "verification_type"
    ] == "signup"
    for wish, status, code in [
        ({"type": "signup", "email": ADA, "password": PASSWORD}, 422, "email_exists"),
        ({"type": "recovery", "email": "nobody@example.com"}, 404, "user_not_found"),
        ({"type": "nonsense", "email": ADA}, 400, "validation_failed"),
        ({"type": "signup", "email": "new@example.com"}, 400, "validation_failed"),
    ]:
        answer = await auth_backend.admin("POST /admin/generate_link", wish)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert (await auth_backend.call("POST /admin/generate_link", stranger)).status_code == 403
    change = {"type": "email_change_new", "email": ADA, "new_email": "new@example.com"}
    auth_backend.configure(email_double_confirm_changes=False)
    link = (await auth_backend.admin("POST /admin/generate_link", change)).json()
    done = await auth_backend.call(
        "POST /verify", {"type": "email_change", "token_hash": link["hashed_token"]}
    )
    assert done.json()["user"]["email"] == "new@example.com"


async def test_invite(auth_backend: AuthBackend):
    """A mail to somebody new; the link signs in; a confirmed user is not invited."""
    invited = await auth_backend.admin("POST /invite", {"email": ADA, "data": {"team": "red"}})
    assert invited.status_code == 200
    assert "invited_at" in invited.json()
    assert auth_backend.outbox.last(ADA).subject == "You've been invited"
    _, _, fragment = await follow(auth_backend, auth_backend.outbox.last_link(ADA))
    assert fragment["type"] == "invite"
    again = await auth_backend.admin("POST /invite", {"email": ADA})
    assert (again.status_code, again.json()["code"]) == (422, "email_exists")


async def test_own_templates(auth_backend: AuthBackend):
    """A project's own words, with the values that its links need; a broken template falls back."""
    from toft.protocol.worker import AuthMailTemplate

    auth_backend.configure(
        email_enable_confirmations=True,
        mail_templates={
            "confirmation": AuthMailTemplate(
                "Hi {{ .Data.name }}",
                "<a href='{{ .SiteURL }}/confirm?token_hash={{ .TokenHash }}&type=email'>{{ .Token }}</a>",
            ),
            "magic_link": AuthMailTemplate("", "{{ if }}"),
        },
    )
    body = {"email": ADA, "password": PASSWORD, "data": {"name": "<Ada>"}}
    await auth_backend.call("POST /signup", body)
    message = auth_backend.outbox.last(ADA)
    assert message.subject == "Hi <Ada>"
    code = auth_backend.outbox.last_code(ADA)
    assert f">{code}</a>" in message.html
    token_hash = message.html.partition("token_hash=")[2].partition("&")[0]
    verified = await auth_backend.call("POST /verify", {"type": "email", "token_hash": token_hash})
    assert verified.status_code == 200
    auth_backend.clock.turn(seconds=2)
    await auth_backend.call("POST /otp", {"email": ADA})
    assert "/verify?token=" in auth_backend.outbox.last(ADA).html


async def test_two_answers_to_one_link(auth_backend: AuthBackend):
    """Of many that come at the same time, one is right."""
    await unconfirmed(auth_backend)
    token_hash = parse_qs(urlsplit(auth_backend.outbox.last_link(ADA)).query)["token"][0]
    body = {"type": "email", "token_hash": token_hash}
    answers = await asyncio.gather(*(auth_backend.call("POST /verify", body) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [403] * 7
