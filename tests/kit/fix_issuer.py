"""An OpenID Connect issuer that we did not write, on a port of its own."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import httpx
import oidc_provider_mock
import pytest

USERS = (
    oidc_provider_mock.User(
        sub="u-1",
        claims={
            "email": "Ada@Example.com", "email_verified": True, "name": "Ada Lovelace",
            "preferred_username": "ada", "picture": "https://pictures.example/ada.png",
        },
    ),
    oidc_provider_mock.User(sub="u-2", claims={"email": "una@example.com", "email_verified": False}),
    oidc_provider_mock.User(sub="u-3", claims={"name": "Nobody's mail"}),
)  # fmt: skip


class ForeignIssuer:
    """Signs its users in. url: the issuer."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def sign_in(self, address: str, sub: str | None) -> str:
        """What somebody does on the issuer's page, and where the browser goes then. None: refuses."""
        async with httpx.AsyncClient() as browser:
            form = {"action": "deny"} if sub is None else {"sub": sub}
            answer = await browser.post(address, data=form)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    async def id_token(self, sub: str, client_id: str = "our-client", nonce: str = "") -> dict[str, str]:
        """What an app that asks the issuer by itself is given: `id_token`, `access_token`."""
        back = "http://127.0.0.1:1/app"
        asked = {
            "client_id": client_id, "redirect_uri": back, "response_type": "code", "state": "s",
            "scope": "openid email profile", **({"nonce": nonce} if nonce else {}),
        }  # fmt: skip
        location = await self.sign_in(str(httpx.URL(f"{self.url}/oauth2/authorize", params=asked)), sub)
        code = dict(parse_qsl(urlsplit(location).query))["code"]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back}
        async with httpx.AsyncClient(auth=(client_id, "any")) as app:
            answer = await app.post(f"{self.url}/oauth2/token", data=form)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture(scope="session")
def foreign_issuer() -> Iterator[ForeignIssuer]:
    """One issuer for all tests: it keeps nothing that could disturb another one."""
    with oidc_provider_mock.run_server_in_thread(user_claims=USERS) as server:
        yield ForeignIssuer(f"http://127.0.0.1:{server.server_port}")
