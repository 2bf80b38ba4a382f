"""Logins by way of a provider: the test provider that Toft plays, and an issuer that we did not write."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from tests.kit.fix_auth import AuthBackend
from tests.kit.fix_issuer import ForeignIssuer
from tests.service.auth.test_spine import claims_of
from toft.protocol.worker import AuthProvider

VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
PLAYED = {"github": AuthProvider(client_id="x"), "google": AuthProvider(client_id="y")}


def members(address: str) -> dict[str, str]:
    """What an address carries, in its query and in its fragment."""
    parts = urlsplit(address)
    return {**dict(parse_qsl(parts.query)), **dict(parse_qsl(parts.fragment))}


async def go(backend: AuthBackend, address: str) -> str:
    """Where the browser is sent from an address of Auth."""
    async with httpx.AsyncClient() as browser:
        answer = await browser.get(address)
    assert answer.status_code in (302, 303), answer.text
    return answer.headers["location"]


async def begin(backend: AuthBackend, provider: str = "github", **query: str) -> str:
    return await go(
        backend, str(httpx.URL(f"{backend.url}/authorize", params={"provider": provider, **query}))
    )


async def sign_in(backend: AuthBackend, hint: str, provider: str = "github", **query: str) -> dict[str, str]:
    """All the way with the test provider; what the app is given."""
    back = await begin(backend, provider, prompt="none", login_hint=hint, **query)
    return members(await go(backend, back))


async def user_of(backend: AuthBackend, told: dict[str, str]) -> dict[str, Any]:
    answer = await backend.call("GET /user", token=told["access_token"])
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def played(auth_backend: AuthBackend) -> AuthBackend:
    """Two providers without a secret."""
    auth_backend.configure(external=PLAYED)
    return auth_backend


async def test_implicit(played: AuthBackend):
    """A new user with the provider's words, a session in the fragment, tokens for the provider's API."""
    told = await sign_in(played, "ada", redirect_to="http://127.0.0.1:3000/app")
    assert told["token_type"] == "bearer"
    assert told["provider_token"]
    assert claims_of(told["access_token"])["amr"][0]["method"] == "oauth"
    user = await user_of(played, told)
    assert (user["email"], user["user_metadata"]["full_name"]) == ("ada@example.com", "Ada Lovelace")
    assert user["app_metadata"] == {"provider": "github", "providers": ["github"]}
    assert "email_confirmed_at" in user
    [identity] = user["identities"]
    assert identity["provider"] == "github"
    assert identity["id"] == identity["identity_data"]["provider_id"]
    again = await user_of(played, await sign_in(played, "ada@example.com"))
    assert again["id"] == user["id"]


async def test_pkce(played: AuthBackend):
    """The app gets a code that its verifier, and no other, turns into a session, once."""
    query = {"code_challenge": CHALLENGE, "code_challenge_method": "s256"}
    told = await sign_in(played, "grace", **query)
    assert set(told) == {"code"}
    grant = {"auth_code": told["code"], "code_verifier": VERIFIER}
    wrong = await played.call("POST /token?grant_type=pkce", {**grant, "code_verifier": "x" * 43})
    assert wrong.json()["code"] == "bad_code_verifier"
    session = (await played.call("POST /token?grant_type=pkce", grant)).json()
    assert session["user"]["email"] == "grace@example.com"
    assert session["provider_token"]
    assert session["provider_refresh_token"]
    assert (await played.call("POST /token?grant_type=pkce", grant)).status_code == 404


async def test_the_page(played: AuthBackend):
    """It names test users and takes others; cancelling is an error for the app; nothing is run or framed."""
    address = await begin(played)
    assert address.startswith(f"{played.url}/test-provider?")
    async with httpx.AsyncClient() as browser:
        page = await browser.get(address)
        assert "Ada Lovelace" in page.text
        assert "<script" not in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        given = members(address)
        form = {**given, "email": "New@example.com", "name": 'Eve "<b>', "verified": "yes"}
        back = (await browser.post(f"{played.url}/test-provider", data=form)).headers["location"]
        user = await user_of(played, members(await go(played, back)))
        assert (user["email"], user["user_metadata"]["name"]) == ("new@example.com", 'Eve "<b>')
        given = members(await begin(played))
        form = {**given, "action": "cancel"}
        back = (await browser.post(f"{played.url}/test-provider", data=form)).headers["location"]
        refusal = members(await go(played, back))
        assert refusal["error"] == "access_denied"
        injected = await browser.get(f"{played.url}/test-provider?provider=github&state=%22%3E%3Cscript%3E")
        assert "<script" not in injected.text
        assert (await browser.get(f"{played.url}/test-provider?provider=nobody")).status_code == 404


async def test_an_address_that_is_known_is_linked(played: AuthBackend):
    """One user, two ways in; both are told in app_metadata."""
    session = await played.sign_up("ada@example.com")
    user = await user_of(played, await sign_in(played, "ada"))
    assert user["id"] == session["user"]["id"]
    assert user["app_metadata"]["providers"] == ["email", "github"]
    third = await user_of(played, await sign_in(played, "ada", "google"))
    assert third["app_metadata"]["providers"] == ["email", "github", "google"]
    password = {"email": "ada@example.com", "password": "a-long-enough-one"}
    assert (await played.call("POST /token?grant_type=password", password)).status_code == 200


async def test_nobody_takes_an_account_over(played: AuthBackend):
    """An unverified address links nothing; whoever signed up first with another's address is put out."""
    played.configure(email_enable_confirmations=True)
    told = await sign_in(played, "unverified")
    assert told["error_code"] == "provider_email_needs_verification"
    assert played.outbox.last("unverified@example.com").subject
    await played.call("POST /signup", {"email": "grace@example.com", "password": "the-attackers-one"})
    user = await user_of(played, await sign_in(played, "grace"))
    assert user["app_metadata"]["providers"] == ["github"]
    attack = {"email": "grace@example.com", "password": "the-attackers-one"}
    assert (await played.call("POST /token?grant_type=password", attack)).status_code == 400
    owner = (
        await played.admin("POST /admin/users", {"email": "una@example.com", "email_confirm": True})
    ).json()
    address = await begin(played)
    form = {**members(address), "email": "una@example.com", "name": "Not Una"}
    async with httpx.AsyncClient() as browser:
        back = (await browser.post(f"{played.url}/test-provider", data=form)).headers["location"]
    stranger = members(await go(played, back))
    assert (await user_of(played, stranger))["id"] != owner["id"]
    assert (await user_of(played, stranger))["email"] == ""


async def test_linking_by_hand(played: AuthBackend):
    """A user adds a provider, also as an anonymous one, and takes it away; nobody else's is taken."""
    played.configure(enable_manual_linking=True, enable_anonymous_sign_ins=True)
    session = (await played.call("POST /signup", {})).json()

    async def link(hint: str) -> dict[str, str]:
        wish = f"provider=github&skip_http_redirect=true&prompt=none&login_hint={hint}"
        answer = await played.call(f"GET /user/identities/authorize?{wish}", token=session["access_token"])
        return members(await go(played, answer.json()["url"]))

    user = await user_of(played, await link("alan"))
    assert user["id"] == session["user"]["id"]
    assert (user["is_anonymous"], user["email"]) == (False, "alan@example.com")
    assert (await link("alan"))["error_code"] == "identity_already_exists"
    await sign_in(played, "grace")
    assert (await link("grace"))["error_code"] == "identity_already_exists"
    second = await user_of(played, await sign_in(played, "alan", "google"))
    assert len(second["identities"]) == 2
    one = second["identities"][0]["identity_id"]
    gone = await played.call(f"DELETE /user/identities/{one}", token=session["access_token"])
    assert gone.status_code == 200, gone.text


async def test_a_state_works_once_and_not_for_long(played: AuthBackend):
    """Unknown, used and old states lead to the site with an error; a code of another flow is refused."""
    back = await begin(played, prompt="none", login_hint="ada")
    assert "access_token" in members(await go(played, back))
    assert members(await go(played, back))["error_code"] == "bad_oauth_state"
    for state in ("", "x", "00000000-0000-0000-0000-000000000001"):
        location = await go(played, f"{played.url}/callback?code=x&state={state}")
        assert location.startswith("http://127.0.0.1:3000?")
        assert members(location)["error_code"] == "bad_oauth_state"
    old = await begin(played, prompt="none", login_hint="ada")
    played.clock.turn(minutes=6)
    assert members(await go(played, old))["error_code"] == "bad_oauth_state"
    first = members(await begin(played, prompt="none", login_hint="ada"))
    second = members(await begin(played, prompt="none", login_hint="ada"))
    crossed = f"{played.url}/callback?code={first['code']}&state={second['state']}"
    assert members(await go(played, crossed))["error_code"] == "bad_oauth_callback"
    assert "error" in members(await go(played, f"{played.url}/callback?state={second['state']}"))


async def test_who_may_not_come_in(played: AuthBackend):
    """Closed sign-ups, banned users and a hook that refuses are told to the app."""
    user = await user_of(played, await sign_in(played, "ada"))
    await played.admin(f"PUT /admin/users/{user['id']}", {"ban_duration": "1h"})
    assert (await sign_in(played, "ada"))["error_code"] == "user_banned"
    played.configure(enable_signup=False)
    assert (await sign_in(played, "grace"))["error_code"] == "signup_disabled"
    assert (await played.call("GET /authorize?provider=gitlab")).json()["message"] == (
        "Unsupported provider: provider is not enabled"
    )


async def test_any_issuer(auth_backend: AuthBackend, foreign_issuer: ForeignIssuer):
    """An issuer's address in the configuration is enough: discovery, code, PKCE and keys are its own."""
    provider = AuthProvider(client_id="our-client", secret="our-secret", url=foreign_issuer.url)
    auth_backend.configure(external={"keycloak": provider, "house": provider})
    for name in ("keycloak", "house"):
        address = await begin(auth_backend, name, scopes="address")
        assert address.startswith(f"{foreign_issuer.url}/oauth2/authorize?")
        assert {"openid", "email", "address"} <= set(members(address)["scope"].split())
        told = members(await go(auth_backend, await foreign_issuer.sign_in(address, "u-1")))
        user = await user_of(auth_backend, told)
        assert (user["email"], user["user_metadata"]["name"]) == ("ada@example.com", "Ada Lovelace")
        assert user["user_metadata"]["avatar_url"] == "https://pictures.example/ada.png"
    assert user["app_metadata"]["providers"] == ["keycloak", "house"]
    denied = await foreign_issuer.sign_in(await begin(auth_backend, "house"), None)
    assert members(await go(auth_backend, denied))["error"] == "access_denied"
    nameless = await foreign_issuer.sign_in(await begin(auth_backend, "house"), "u-3")
    assert members(await go(auth_backend, nameless))["error_description"] == (
        "Error getting user email from external provider"
    )
    state = members(await begin(auth_backend, "house"))["state"]
    forged = await go(auth_backend, f"{auth_backend.url}/callback?code=forged&state={state}")
    assert members(forged)["error"] == "server_error"


async def test_an_issuer_that_is_away(auth_backend: AuthBackend):
    """A known provider's address is used by convention; where only the issuer is known, it is said."""
    away = AuthProvider(client_id="c", secret="s", url="http://127.0.0.1:1")
    auth_backend.configure(
        external={"keycloak": away, "house": away, "google": AuthProvider(client_id="c", secret="s")}
    )
    assert (await begin(auth_backend, "keycloak")).startswith(
        "http://127.0.0.1:1/protocol/openid-connect/auth?"
    )
    refused = await auth_backend.call("GET /authorize?provider=house")
    assert (refused.status_code, refused.json()["code"]) == (400, "validation_failed")
    assert "127.0.0.1:1" in auth_backend.reports[-1]
    assert (await begin(auth_backend, "google")).startswith("https://accounts.google.com/o/oauth2/v2/auth?")


async def test_id_tokens(auth_backend: AuthBackend, foreign_issuer: ForeignIssuer):
    """An app brings the issuer's token: it signs in when it is ours, fresh, and has the right nonce."""
    provider = AuthProvider(client_id="other,our-client", secret="s", url=foreign_issuer.url)
    auth_backend.configure(external={"keycloak": provider})
    line = "POST /token?grant_type=id_token"
    given = await foreign_issuer.id_token("u-1")
    body = {"provider": "keycloak", "id_token": given["id_token"], "access_token": given["access_token"]}
    session = (await auth_backend.call(line, body)).json()
    assert session["user"]["email"] == "ada@example.com", session
    by_issuer = {"client_id": "our-client", "issuer": foreign_issuer.url, "id_token": given["id_token"]}
    assert (await auth_backend.call(line, by_issuer)).json()["user"]["id"] == session["user"]["id"]

    hashed = hashlib.sha256(b"the-nonce").hexdigest()
    with_nonce = await foreign_issuer.id_token("u-1", nonce=hashed)
    body = {"provider": "keycloak", "id_token": with_nonce["id_token"]}
    assert (await auth_backend.call(line, {**body, "nonce": "the-nonce"})).status_code == 200
    for wrong in ({**body, "nonce": "another"}, body):
        answer = await auth_backend.call(line, wrong)
        assert (answer.status_code, answer.json()["error"][:7]) == (400, "invalid")

    foreign = (await foreign_issuer.id_token("u-1", client_id="somebody-else"))["id_token"]
    head, payload, signature = given["id_token"].split(".")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode() + f".{payload}."
    own = auth_backend.ring.sign({**claims_of(given["id_token"])})
    for bad in (foreign, unsigned, own, f"{head}.{payload}.{signature[::-1]}", "x", "a.b.c"):
        answer = await auth_backend.call(line, {"provider": "keycloak", "id_token": bad})
        assert answer.json() == {"error": "invalid request", "error_description": "Bad ID token"}, bad
    auth_backend.clock.turn(hours=2)
    late = await auth_backend.call(line, {"provider": "keycloak", "id_token": given["id_token"]})
    assert late.json()["error_description"] == "Bad ID token"
    off = await auth_backend.call(line, {"provider": "google", "id_token": given["id_token"]})
    assert off.json()["code"] == "provider_disabled"
