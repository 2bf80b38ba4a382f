"""A backend's Auth over a fresh database and real HTTP; tests turn its clock and read its mailbox."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, override

import httpx
import msgspec
import pytest

from tests.kit.fix_supabase import PASSWORD, SupabaseCluster, SupabaseTemplates
from toft.auth.context import DATABASE_ROLE, AuthContext, Message
from toft.auth.limits import Limits
from toft.auth.passwords import PasswordWork
from toft.auth.service import AuthService
from toft.auth.social.issuer import Issuers
from toft.http.message import Request, Response
from toft.http.outgoing import HttpOutside
from toft.http.server import Listener, listen
from toft.pg.connection import Connection
from toft.pg.pool import Pool
from toft.pg.typed import connect_typed
from toft.protocol.worker import AuthSettings, JwtKey
from toft.tokens.apikey import make_legacy_key, make_publishable, make_secret
from toft.tokens.identify import ProjectKeys, identify
from toft.tokens.jwt import KeyRing
from toft.tokens.keys import new_secret, new_signing_key
from toft.world import SystemClock, SystemEntropy


class TurnedClock(SystemClock):
    """The machine's clock, moved by what a test asks for."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    @override
    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    @override
    def unix(self) -> float:
        return self.now().timestamp()

    def turn(self, **units: float) -> None:
        """Move on by `timedelta(**units)`."""
        self.ahead += timedelta(**units)


class KeptOutbox:
    """Keeps what Auth sends."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def deliver(self, message: Message) -> None:
        self.messages.append(message)

    def last(self, to: str) -> Message:
        """The newest message to an address."""
        return [message for message in self.messages if message.to == to][-1]

    def last_code(self, to: str) -> str:
        """The code in it."""
        found = re.search(r"code:? (?:is )?([0-9]{6,10})", self.last(to).text)
        assert found is not None
        return found[1]

    def last_link(self, to: str) -> str:
        """The link in it."""
        found = re.search(r"https?://\S+/verify\S+", self.last(to).text)
        assert found is not None
        return found[0]


class AuthBackend:
    """Auth behind the rules of the door, on a port of its own."""

    def __init__(self, cluster: SupabaseCluster) -> None:
        self.cluster = cluster
        self.clock = TurnedClock()
        self.outbox = KeptOutbox()
        self.reports: list[str] = []
        self.settings = AuthSettings()
        entropy = SystemEntropy()
        secret = new_secret(entropy)
        key = new_signing_key(entropy)
        self.ring = KeyRing(secret, [JwtKey(key.kid, key.alg, key.jwk, signs=True)])
        self.keys = ProjectKeys(
            ring=self.ring,
            anon_key=make_legacy_key("anon", secret, self.clock.unix()),
            service_role_key=make_legacy_key("service_role", secret, self.clock.unix()),
            publishable_key=make_publishable(entropy),
            secret_key=make_secret(entropy),
        )
        self.passwords = PasswordWork(entropy)
        self.pool = Pool(lambda: connect_typed(cluster.socket_path, DATABASE_ROLE, PASSWORD))
        self.outside = HttpOutside()
        self.issuers = Issuers(self.outside, self.clock)
        self.listener: Listener | None = None
        self.service: AuthService | None = None
        self.http: httpx.AsyncClient | None = None

    async def open(self) -> None:
        self.listener = await listen(self.handle)
        self.configure()
        self.http = httpx.AsyncClient(
            base_url=self.url,
            headers={"apikey": self.keys.publishable_key, "x-supabase-api-version": "2024-01-01"},
        )

    async def close(self) -> None:
        assert self.listener is not None
        assert self.http is not None
        await self.http.aclose()
        await self.listener.close()
        self.pool.close()
        self.passwords.close()
        await self.outside.close()

    @property
    def url(self) -> str:
        assert self.listener is not None
        return f"http://127.0.0.1:{self.listener.port}/auth/v1"

    def configure(self, **changes: Any) -> None:
        """Change settings from here on."""
        self.settings = msgspec.structs.replace(self.settings, **changes)
        self.service = AuthService(
            AuthContext(
                pool=self.pool,
                ring=self.ring,
                clock=self.clock,
                entropy=SystemEntropy(),
                passwords=self.passwords,
                settings=self.settings,
                external_url=self.url,
                outbox=self.outbox,
                issuers=self.issuers,
                limits=Limits(self.settings.rate_limits, self.clock),
                report=self.reports.append,
            )
        )

    async def handle(self, request: Request) -> Response:
        assert self.service is not None
        caller = identify(request.headers, "auth", self.keys, self.clock.unix())
        return await self.service.handle(request, caller, request.raw_path.removeprefix("/auth/v1"))

    async def call(
        self, line: str, body: object = None, *, token: str | None = None, **headers: str
    ) -> httpx.Response:
        """`POST /signup` with a JSON body, as a bearer."""
        assert self.http is not None
        method, path = line.split(" ", 1)
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        content = None if body is None else json.dumps(body)
        return await self.http.request(
            method, self.url + path, content=content, headers={**headers, "content-type": "application/json"}
        )

    async def admin(self, line: str, body: object = None, **headers: str) -> httpx.Response:
        """The same with the secret key."""
        return await self.call(line, body, apikey=self.keys.secret_key, **headers)

    async def sign_up(
        self, email: str = "ada@example.com", password: str = "a-long-enough-one"
    ) -> dict[str, Any]:
        """A new user's session."""
        answer = await self.call("POST /signup", {"email": email, "password": password})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def sql(self, user: str = "postgres") -> Connection:
        """A session of the database."""
        return await self.cluster.connect(user)


@pytest.fixture
async def auth_backend(supabase_templates: SupabaseTemplates) -> AsyncIterator[AuthBackend]:
    """Auth over a fresh database of the newest version."""
    cluster = await supabase_templates.start(18)
    backend = AuthBackend(cluster)
    await backend.open()
    yield backend
    await backend.close()
    await supabase_templates.stop(cluster)
