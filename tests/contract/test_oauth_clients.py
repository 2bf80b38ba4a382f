"""OAuth clients that we did not write, against a lease: Authlib, and the MCP SDK at a protected resource."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
import uvicorn
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import AsyncOAuth2Client
from joserfc import jwt
from joserfc.jwk import KeySet
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from tests.kit.browser import consent
from tests.kit.fix_daemon import RunningDaemon
from tests.kit.real_cli import RealCli
from toft.client.services import Api
from toft.client.users import Users

CONFIG = """
[auth.oauth_server]
enabled = true
allow_dynamic_registration = true
"""
#: a table that first-party sessions see whole, and an OAuth client only its own rows of
MIGRATION = """
create table public.notes (id bigint generated always as identity primary key, client text, text text);
insert into public.notes (client, text) values (null, 'for everybody');
alter table public.notes enable row level security;
create policy first_party on public.notes for select to authenticated
  using ((auth.jwt() ->> 'client_id') is null);
create policy own_rows on public.notes to authenticated using (client = auth.jwt() ->> 'client_id')
  with check (client = auth.jwt() ->> 'client_id');
"""
EMAIL, PASSWORD = "ada@example.com", "a-long-enough-one"
BACK = "http://127.0.0.1:7777/callback"


@pytest.fixture
def env(toftd: RunningDaemon, folder: Path) -> dict[str, str]:
    """The variables of a lease whose Auth is an OAuth server, with a user."""
    cli = RealCli(toftd, folder)
    cli.write({"supabase/config.toml": CONFIG, "1_notes.sql": MIGRATION})
    cli.json("lease", "create")
    env = cli.json("lease", "env")
    Users(Api(env["SUPABASE_URL"], env["SUPABASE_SECRET_KEY"])).create(EMAIL, PASSWORD)
    return env


async def notes(env: dict[str, str], token: str, **note: str) -> list[str]:
    """What a bearer sees of the table, after writing a row if one is given."""
    headers = {"apikey": env["SUPABASE_PUBLISHABLE_KEY"], "authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=env["SUPABASE_URL"], headers=headers) as http:
        if note:
            written = await http.post("/rest/v1/notes", json=note)
            assert written.status_code == 201, written.text
        return [row["text"] for row in (await http.get("/rest/v1/notes?order=id")).json()]


async def test_authlib(env: dict[str, str]) -> None:
    """A confidential client of Authlib: discovery, PKCE, id_token, userinfo, refresh, revocation, RLS."""
    auth = env["SUPABASE_URL"] + "/auth/v1"
    wish = {"client_name": "A client", "redirect_uris": [BACK]}
    made = Api(auth, env["SUPABASE_SECRET_KEY"]).call("Auth", "POST", "/admin/oauth/clients", wish)
    async with httpx.AsyncClient() as http:
        found = (
            await http.get(f"{env['SUPABASE_URL']}/.well-known/oauth-authorization-server/auth/v1")
        ).json()
        keys = KeySet.import_key_set((await http.get(found["jwks_uri"])).json())
    client = AsyncOAuth2Client(
        made["client_id"], made["client_secret"], scope="openid email offline_access",
        redirect_uri=BACK, code_challenge_method="S256", token_endpoint=found["token_endpoint"],
    )  # fmt: skip
    async with client:
        verifier = generate_token(48)
        address, state = client.create_authorization_url(
            found["authorization_endpoint"], code_verifier=verifier, nonce="n-1",
            resource="https://api.example/v1",
        )  # fmt: skip
        answer = await consent(address, EMAIL, PASSWORD)
        assert answer["state"] == state
        location = str(httpx.URL(BACK, params=answer))
        token = await client.fetch_token(authorization_response=location, code_verifier=verifier, state=state)
        identity = jwt.decode(token["id_token"], keys, algorithms=["ES256"]).claims
        assert (identity["iss"], identity["aud"], identity["nonce"]) == (
            found["issuer"],
            made["client_id"],
            "n-1",
        )
        assert (await client.get(found["userinfo_endpoint"])).json()["email"] == EMAIL
        first = token["access_token"]
        second = await client.refresh_token()
        assert second["access_token"] != first
        claims = jwt.decode(second["access_token"], keys, algorithms=["ES256"]).claims
        assert claims["client_id"] == made["client_id"]
        assert await notes(env, second["access_token"], client=made["client_id"], text="the client's") == [
            "the client's"
        ]
        gone = await client.revoke_token(found["revocation_endpoint"], second["refresh_token"])
        assert gone.status_code == 200
        assert (await client.get(found["userinfo_endpoint"])).status_code == 403
    session = Users(Api(env["SUPABASE_URL"], env["SUPABASE_SECRET_KEY"])).sign_in(EMAIL)
    assert await notes(env, session["access_token"]) == ["for everybody", "the client's"]


class Kept(TokenStorage):
    """Where an MCP client keeps what it was given."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Verifier:
    """The protected resource's check of a token, by the keys that the lease publishes."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer

    async def verify_token(self, token: str) -> AccessToken | None:
        async with httpx.AsyncClient() as http:
            published = (await http.get(f"{self.issuer}/.well-known/jwks.json")).json()
        claims: dict[str, Any] = jwt.decode(
            token, KeySet.import_key_set(published), algorithms=["ES256"]
        ).claims
        assert claims["iss"] == self.issuer
        return AccessToken(
            token=token, client_id=claims["client_id"], scopes=claims["scope"].split(),
            expires_at=claims["exp"], subject=claims["sub"],
        )  # fmt: skip


@asynccontextmanager
async def protected_resource(issuer: str) -> AsyncIterator[str]:
    """An MCP server with one tool, for bearers of this issuer's tokens only; its address."""
    sock = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
    settings = AuthSettings.model_validate(
        {
            "issuer_url": issuer, "resource_server_url": url, "validate_token_resource": False,
            "required_scopes": ["email", "offline_access"],
        }
    )  # fmt: skip
    server = MCPServer("notes", token_verifier=Verifier(issuer), auth=settings)

    @server.tool()
    async def who() -> str:
        """Who asks."""
        token = get_access_token()
        return token.subject or "" if token is not None else ""

    runner = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning", lifespan="on"))
    serving = asyncio.create_task(runner.serve([sock]))
    try:
        yield url
    finally:
        runner.should_exit = True
        await serving


async def test_the_mcp_sdk(env: dict[str, str]) -> None:
    """The SDK's OAuth client finds the lease by the resource's metadata, registers, asks and is let in."""
    issuer = env["SUPABASE_URL"] + "/auth/v1"
    answers: list[dict[str, str]] = []
    asked: list[str] = []

    async def show(address: str) -> None:
        asked.append(address)
        answers.append(await consent(address, EMAIL, PASSWORD))

    async def come_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=answers[-1]["code"], state=answers[-1]["state"])

    storage = Kept()
    metadata = OAuthClientMetadata.model_validate(
        {"client_name": "An MCP client", "redirect_uris": [BACK], "token_endpoint_auth_method": "none"}
    )
    async with protected_resource(issuer) as url:
        provider = OAuthClientProvider(url, metadata, storage, show, come_back)
        async with (
            httpx2.AsyncClient(auth=provider, follow_redirects=True, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            told = await client.call_tool("who", {})
    assert len(asked) == 1
    query = dict(httpx.URL(asked[0]).params)
    assert query["resource"] == url
    assert "offline_access" in query["scope"]
    assert storage.client is not None
    assert storage.tokens is not None
    assert storage.tokens.refresh_token
    user = Users(Api(env["SUPABASE_URL"], env["SUPABASE_SECRET_KEY"])).find(EMAIL)
    assert user["id"] in json.dumps([part.model_dump() for part in told.content])
    assert await notes(env, storage.tokens.access_token) == []
