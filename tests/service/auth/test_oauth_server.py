"""Auth as an OAuth 2.1 server: discovery, registration, consent, tokens, and what is refused."""

from __future__ import annotations

import base64
import re
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.kit.fix_auth import AuthBackend
from tests.service.auth.test_codes_and_links import PKCE, VERIFIER
from tests.service.auth.test_spine import claims_of

BACK = "http://127.0.0.1:7777/callback"


@pytest.fixture
async def server(auth_backend: AuthBackend) -> AuthBackend:
    auth_backend.configure(oauth_server_enabled=True, oauth_server_allow_dynamic_registration=True)
    return auth_backend


async def register(server: AuthBackend, **fields) -> dict:
    body = {"redirect_uris": [BACK], "client_name": "An <app>", **fields}
    answer = await server.call("POST /oauth/clients/register", body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def ask(server: AuthBackend, client: dict, **query: str):
    assert server.http is not None
    wanted = {
        "client_id": client["client_id"], "redirect_uri": BACK, "response_type": "code", "state": "s t",
        "scope": "email", **PKCE, **query,
    }  # fmt: skip
    wanted = {name: value for name, value in wanted.items() if value}
    return await server.http.get(f"{server.url}/oauth/authorize?{urlencode(wanted)}", headers={"apikey": ""})


async def authorization_id(server: AuthBackend, client: dict, **query: str) -> str:
    answer = await ask(server, client, **query)
    assert answer.status_code == 302, answer.text
    return parse_qs(urlsplit(answer.headers["location"]).query)["authorization_id"][0]


async def code_of(server: AuthBackend, client: dict, token: str, **query: str) -> str:
    name = await authorization_id(server, client, **query)
    details = await server.call(f"GET /oauth/authorizations/{name}", token=token)
    address = details.json().get("redirect_url")
    if address is None:
        body = {"action": "approve"}
        answer = await server.call(f"POST /oauth/authorizations/{name}/consent", body, token=token)
        address = answer.json()["redirect_url"]
    return parse_qs(urlsplit(address).query)["code"][0]


async def exchange(server: AuthBackend, **fields: str):
    assert server.http is not None
    headers = {"apikey": ""}
    if "basic" in fields:
        headers["authorization"] = "Basic " + base64.b64encode(fields.pop("basic").encode()).decode()
    return await server.http.post(f"{server.url}/oauth/token", data=fields, headers=headers)


async def test_off(auth_backend: AuthBackend):
    """Switched off, every route is 404; the keys' document is served all the same."""
    for line in (
        "GET /oauth/authorize", "POST /oauth/token", "GET /oauth/userinfo", "GET /user/oauth/grants",
        "GET /.well-known/oauth-authorization-server", "GET /oauth/consent",
    ):  # fmt: skip
        answer = await auth_backend.call(line, {} if line.startswith("POST") else None)
        assert (answer.status_code, answer.json()["code"]) == (404, "feature_disabled")
    known = await auth_backend.call("GET /.well-known/openid-configuration")
    assert known.json()["jwks_uri"] == f"{auth_backend.url}/.well-known/jwks.json"
    assert "registration_endpoint" not in known.json()


async def test_whole_flow_of_a_public_client(server: AuthBackend):
    """Register, ask, see, approve, exchange, use, refresh; the second time nobody is asked."""
    found = (await server.call("GET /.well-known/oauth-authorization-server")).json()
    assert found["issuer"] == server.url
    assert found["registration_endpoint"] == f"{server.url}/oauth/clients/register"
    client = await register(server, token_endpoint_auth_method="none")
    assert "client_secret" not in client
    token = (await server.sign_up())["access_token"]
    name = await authorization_id(
        server, client, scope="openid email offline_access", nonce="n", resource="https://mcp.example/x?y=1"
    )
    details = (await server.call(f"GET /oauth/authorizations/{name}", token=token)).json()
    assert details["client"] == {"id": client["client_id"], "name": "An <app>"}
    assert details["scope"] == "openid email offline_access"
    assert details["user"]["email"] == "ada@example.com"
    code = await code_of_named(server, name, token)
    fields = {"grant_type": "authorization_code", "client_id": client["client_id"], "code_verifier": VERIFIER}
    fields["code"] = code
    answer = await exchange(server, **fields, redirect_uri=BACK, resource="https://mcp.example/x?y=1")
    assert answer.status_code == 200, answer.text
    tokens = answer.json()
    assert set(tokens) == {"access_token", "token_type", "expires_in", "refresh_token", "id_token"}
    claims = claims_of(tokens["access_token"])
    assert claims["client_id"] == client["client_id"]
    assert claims["scope"] == "openid email offline_access"
    assert claims["amr"][0]["method"] == "oauth_provider/authorization_code"
    identity = claims_of(tokens["id_token"])
    assert (identity["aud"], identity["nonce"], identity["email"]) == (
        client["client_id"],
        "n",
        "ada@example.com",
    )
    info = (await server.call("GET /oauth/userinfo", token=tokens["access_token"])).json()
    assert info == {"sub": claims["sub"], "email": "ada@example.com", "email_verified": True}
    refreshed = await exchange(
        server,
        grant_type="refresh_token",
        client_id=client["client_id"],
        refresh_token=tokens["refresh_token"],
    )
    assert refreshed.status_code == 200
    assert claims_of(refreshed.json()["access_token"])["session_id"] == claims["session_id"]
    again = await authorization_id(server, client)
    at_once = (await server.call(f"GET /oauth/authorizations/{again}", token=token)).json()
    assert set(at_once) == {"redirect_url"}


async def code_of_named(server: AuthBackend, name: str, token: str) -> str:
    body = {"action": "approve"}
    answer = await server.call(f"POST /oauth/authorizations/{name}/consent", body, token=token)
    query = parse_qs(urlsplit(answer.json()["redirect_url"]).query)
    assert query["state"] == ["s t"]
    return query["code"][0]


async def test_confidential_client(server: AuthBackend):
    """By its registered method and secret only."""
    client = await register(server)
    token = (await server.sign_up())["access_token"]
    pair = f"{client['client_id']}:{client['client_secret']}"
    grant = {"grant_type": "authorization_code", "code_verifier": VERIFIER}
    code = await code_of(server, client, token)
    by_post = {"client_id": client["client_id"], "client_secret": client["client_secret"]}
    for wrong in (by_post, {"basic": pair + "x"}, {"client_id": client["client_id"]}, {"basic": "x:y"}, {}):
        answer = await exchange(server, **grant, code=code, **wrong)
        assert answer.status_code == 400
        assert answer.json()["code"] == "invalid_credentials"
    right = await exchange(server, **grant, code=code, basic=pair)
    assert right.status_code == 200
    assert "id_token" not in right.json()


async def test_codes_are_used_once_and_by_their_client(server: AuthBackend):
    """A wrong attempt does not burn the code; the right one does."""
    client, other = (
        await register(server, token_endpoint_auth_method="none"),
        await register(server, token_endpoint_auth_method="none"),
    )
    token = (await server.sign_up())["access_token"]
    code = await code_of(server, client, token)
    fields = {"grant_type": "authorization_code", "client_id": client["client_id"], "code_verifier": VERIFIER}
    fields["code"] = code
    for wrong in (
        {"client_id": other["client_id"]}, {"code_verifier": "x" * 43}, {"redirect_uri": BACK + "/x"},
        {"code": "x"},
    ):  # fmt: skip
        answer = await exchange(server, **{**fields, **wrong})
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert (await exchange(server, **{**fields, "grant_type": "password"})).json()[
        "error"
    ] == "unsupported_grant_type"
    first = await exchange(server, **fields)
    assert first.status_code == 200
    assert (await exchange(server, **fields)).json()["error"] == "invalid_grant"
    # a refresh token belongs to its client, in both directions
    refresh = {"grant_type": "refresh_token", "refresh_token": first.json()["refresh_token"]}
    stolen = await exchange(server, **refresh, client_id=other["client_id"])
    assert stolen.json()["error"] == "invalid_client"
    plain = await server.call(
        "POST /token?grant_type=refresh_token", {"refresh_token": refresh["refresh_token"]}
    )
    assert plain.json()["error"] == "invalid_client"
    late = await code_of(server, client, token)
    server.clock.turn(seconds=601)
    assert (await exchange(server, **{**fields, "code": late})).json()["error"] == "invalid_grant"


REDIRECT_TRICKS = [
    "https://evil.example/callback", BACK + "/", BACK + "?x=1", BACK + "#x", BACK + "/../x", BACK.upper(),
    "http://127.0.0.1:7777@evil.example/callback", "http://127.0.0.1:7777\\@evil.example/callback",
    "http://127.0.0.1:77777/callback", "http://127.0.0.1:7777/callback%2f", " " + BACK, BACK + "\n",
    "//127.0.0.1:7777/callback", "http://localhost:7777/callback", "http://[::1]:7777/callback", "",
]  # fmt: skip


@pytest.mark.parametrize("target", REDIRECT_TRICKS)
async def test_nothing_is_redirected_to_what_is_not_registered(server: AuthBackend, target: str):
    """Every other spelling is refused without a redirect."""
    client = await register(server, token_endpoint_auth_method="none")
    answer = await ask(server, client, redirect_uri=target)
    assert answer.status_code == 400
    assert "location" not in answer.headers


async def test_faults_go_back_to_the_client(server: AuthBackend):
    """Missing or weak PKCE, unknown scopes and strange resources, with the state."""
    client = await register(server, token_endpoint_auth_method="none")
    cases = [
        ({"code_challenge": "", "code_challenge_method": ""}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "md5"}, "invalid_request"),
        ({"scope": "email everything"}, "invalid_scope"),
        ({"resource": "https://x.example/#y"}, "invalid_target"),
        ({"response_type": "token"}, "unsupported_response_type"),
    ]
    for query, error in cases:
        answer = await ask(server, client, **query)
        assert answer.status_code == 302
        address, _, told = answer.headers["location"].partition("?")
        assert address == BACK
        assert parse_qs(told)["error"] == [error]
        assert parse_qs(told)["state"] == ["s t"]
    unknown = await ask(server, {"client_id": "00000000-0000-0000-0000-000000000001"})
    assert (unknown.status_code, unknown.json()["code"]) == (400, "oauth_client_not_found")


@pytest.mark.parametrize(
    "fields",
    [
        {"redirect_uris": []},
        {"redirect_uris": ["http://app.example/callback"]},
        {"redirect_uris": ["javascript://x/alert(1)"]},
        {"redirect_uris": ["data://x/y"]},
        {"redirect_uris": ["/relative"]},
        {"redirect_uris": ["app:no-host"]},
        {"redirect_uris": ["https://a.example/#x"]},
        {"redirect_uris": ["https://a.example/x,https://evil.example/"]},
        {"redirect_uris": ["https://user@a.example/"]},
        {"redirect_uris": ["https://a.example/ x"]},
        {"redirect_uris": ["https://a.example/x"] * 11},
        {"grant_types": ["password"]},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"client_type": "public", "token_endpoint_auth_method": "client_secret_basic"},
        {"client_uri": "javascript:alert(1)"},
        {"client_name": "x" * 1025},
    ],
)
async def test_registrations_that_are_refused(server: AuthBackend, fields: dict):
    """A client cannot register what would be dangerous or means nothing."""
    answer = await server.call("POST /oauth/clients/register", {"redirect_uris": [BACK], **fields})
    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")


async def test_requests_belong_to_their_first_user(server: AuthBackend):
    """Who opened a request answers it, once, in time, and not from a foreign site."""
    client = await register(server, token_endpoint_auth_method="none")
    ada = (await server.sign_up())["access_token"]
    bob = (await server.sign_up("bob@example.com"))["access_token"]
    name = await authorization_id(server, client)
    path = f"/oauth/authorizations/{name}"
    approve = {"action": "approve"}
    unseen = await server.call(f"POST {path}/consent", approve, token=ada)
    assert (unseen.status_code, unseen.json()["code"]) == (404, "oauth_authorization_not_found")
    foreign = await server.call(f"GET {path}", token=ada, origin="https://evil.example")
    assert foreign.json()["message"] == "unauthorized request origin"
    assert (await server.call(f"GET {path}", token=ada)).status_code == 200
    for line, body in ((f"GET {path}", None), (f"POST {path}/consent", approve)):
        assert (await server.call(line, body, token=bob)).status_code == 404
    assert (await server.call(f"POST {path}/consent", {"action": "maybe"}, token=ada)).status_code == 400
    denied = await server.call(f"POST {path}/consent", {"action": "deny"}, token=ada)
    assert parse_qs(urlsplit(denied.json()["redirect_url"]).query)["error"] == ["access_denied"]
    assert (await server.call(f"POST {path}/consent", approve, token=ada)).status_code == 400
    late = await authorization_id(server, client)
    server.clock.turn(seconds=601)
    assert (await server.call(f"GET /oauth/authorizations/{late}", token=ada)).status_code == 404


async def test_client_tokens_do_not_change_accounts(server: AuthBackend):
    """A client reads its user; it neither changes the account nor consents to more."""
    client = await register(server, token_endpoint_auth_method="none")
    token = (await server.sign_up())["access_token"]
    code = await code_of(server, client, token)
    answer = await exchange(
        server,
        grant_type="authorization_code",
        client_id=client["client_id"],
        code=code,
        code_verifier=VERIFIER,
    )
    of_client = answer.json()["access_token"]
    assert (await server.call("GET /user", token=of_client)).status_code == 200
    name = await authorization_id(server, client, scope="email phone profile")
    for line, body in (
        ("PUT /user", {"password": "another-long-one"}),
        ("GET /reauthenticate", None),
        ("POST /factors", {"factor_type": "totp"}),
        (f"GET /oauth/authorizations/{name}", None),
        (f"POST /oauth/authorizations/{name}/consent", {"action": "approve"}),
        (f"DELETE /user/oauth/grants?client_id={client['client_id']}", None),
    ):
        refused = await server.call(line, body, token=of_client)
        assert (refused.status_code, refused.json()["code"]) == (403, "no_authorization"), line


async def test_grants_and_revocation(server: AuthBackend):
    """The user sees and takes back; the client's tokens end; the client may give a token back itself."""
    client = await register(server, token_endpoint_auth_method="none")
    token = (await server.sign_up())["access_token"]
    grant = {"grant_type": "authorization_code", "client_id": client["client_id"], "code_verifier": VERIFIER}
    tokens = (await exchange(server, **grant, code=await code_of(server, client, token))).json()
    [known] = (await server.call("GET /user/oauth/grants", token=token)).json()
    assert (known["client"]["id"], known["scopes"]) == (client["client_id"], ["email"])
    path = f"DELETE /user/oauth/grants?client_id={client['client_id']}"
    assert (await server.call(path, token=token)).status_code == 204
    assert (await server.call("GET /user", token=tokens["access_token"])).status_code == 403
    assert (await server.call(path, token=token)).json()["code"] == "oauth_consent_not_found"
    assert (await server.call("GET /user/oauth/grants", token=token)).json() == []
    tokens = (await exchange(server, **grant, code=await code_of(server, client, token))).json()
    assert server.http is not None
    given_back = await server.http.post(
        f"{server.url}/oauth/revoke",
        data={"token": tokens["refresh_token"], "client_id": client["client_id"]},
    )
    assert given_back.status_code == 200
    gone = await exchange(
        server,
        grant_type="refresh_token",
        client_id=client["client_id"],
        refresh_token=tokens["refresh_token"],
    )
    assert gone.status_code == 400


async def test_consent_page_without_script(server: AuthBackend):
    """Sign in, see who asks for what, allow: plain forms, nothing from elsewhere, everything escaped."""
    client = await register(server, token_endpoint_auth_method="none")
    await server.sign_up()
    asked = await ask(server, client)
    assert asked.headers["location"].startswith(f"{server.url}/oauth/consent?authorization_id=")
    assert server.http is not None
    page = await server.http.get(asked.headers["location"], headers={"apikey": ""})
    assert page.headers["x-frame-options"] == "DENY"
    assert "<script" not in page.text
    name = re.search(r'name="authorization_id" value="([^"]+)"', page.text)
    assert name is not None
    form = {"authorization_id": name[1], "email": "ada@example.com", "password": "wrong"}
    address = f"{server.url}/oauth/consent"
    refused = await server.http.post(address, data=form)
    assert refused.status_code == 400
    assert "Invalid login credentials" in refused.text
    consent = await server.http.post(address, data={**form, "password": "a-long-enough-one"})
    assert consent.status_code == 200, consent.text
    assert "An &lt;app&gt;" in consent.text
    assert "see your e-mail address" in consent.text
    note = re.search(r'name="note" value="([^"]+)"', consent.text)
    assert note is not None
    answer = {"authorization_id": name[1], "note": note[1], "action": "approve"}
    for forged in ("", "a.b.c", note[1][:-2] + "xx", server.keys.service_role_key):
        bad = await server.http.post(address, data={**answer, "note": forged})
        assert bad.status_code == 400
    other = await authorization_id(server, client)
    moved = await server.http.post(address, data={**answer, "authorization_id": other})
    assert moved.status_code == 400
    allowed = await server.http.post(address, data=answer)
    assert allowed.status_code == 303
    assert allowed.headers["location"].startswith(BACK + "?code=")


async def test_client_administration(server: AuthBackend):
    """Create, list, read, change, renew the secret, delete; deleted clients are nobody."""
    body = {"redirect_uris": ["https://app.example/callback"], "client_name": "One"}
    made = await server.admin("POST /admin/oauth/clients", body)
    assert (made.status_code, made.json()["registration_type"]) == (201, "manual")
    path = f"/admin/oauth/clients/{made.json()['client_id']}"
    assert len((await server.admin("GET /admin/oauth/clients")).json()["clients"]) == 1
    read = (await server.admin(f"GET {path}")).json()
    assert "client_secret" not in read
    changed = await server.admin(f"PUT {path}", {"client_name": "Two", "redirect_uris": [BACK]})
    assert (changed.json()["client_name"], changed.json()["redirect_uris"]) == ("Two", [BACK])
    assert (await server.admin(f"PUT {path}", {})).status_code == 400
    renewed = await server.admin(f"POST {path}/regenerate_secret")
    assert renewed.json()["client_secret"] != made.json()["client_secret"]
    assert (await server.call(f"GET {path}")).status_code == 403
    assert (await server.admin(f"DELETE {path}")).status_code == 204
    assert (await server.admin(f"GET {path}")).json()["code"] == "oauth_client_not_found"
    server.configure(oauth_server_allow_dynamic_registration=False)
    closed = await server.call("POST /oauth/clients/register", body)
    assert (closed.status_code, closed.json()["code"]) == (403, "oauth_dynamic_client_registration_disabled")
