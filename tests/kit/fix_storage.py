"""A backend's Storage over a fresh database, real HTTP and a folder of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.kit.fix_auth import TurnedClock
from tests.kit.fix_supabase import PASSWORD, SupabaseCluster, SupabaseTemplates
from toft.http.message import Request, Response
from toft.http.server import Listener, listen
from toft.pg.connection import Connection, connect
from toft.pg.pool import Pool
from toft.protocol.worker import StorageSettings
from toft.storage.blobs.local import LocalBlobs
from toft.storage.context import DATABASE_ROLE, S3Keys, StorageContext
from toft.storage.images.studio import Studio
from toft.storage.service import StorageService
from toft.tokens.apikey import make_legacy_key, make_publishable, make_secret
from toft.tokens.identify import ProjectKeys, identify
from toft.tokens.jwt import KeyRing
from toft.tokens.keys import new_secret
from toft.world import SystemEntropy

ACCESS_KEY_ID = "only-for-tests"
SECRET_ACCESS_KEY = "secret-of-these-tests"


class StorageBackend:
    """Storage behind the rules of the door, on a port of its own."""

    def __init__(self, cluster: SupabaseCluster, root: Path) -> None:
        self.cluster = cluster
        self.root = root
        self.clock = TurnedClock()
        self.reports: list[str] = []
        entropy = SystemEntropy()
        secret = new_secret(entropy)
        self.ring = KeyRing(secret)
        self.keys = ProjectKeys(
            ring=self.ring,
            anon_key=make_legacy_key("anon", secret, self.clock.unix()),
            service_role_key=make_legacy_key("service_role", secret, self.clock.unix()),
            publishable_key=make_publishable(entropy),
            secret_key=make_secret(entropy),
        )
        self.pool = Pool(lambda: connect(cluster.socket_path, DATABASE_ROLE, PASSWORD))
        self.settings = StorageSettings()
        self.studio = Studio()
        self.listener: Listener | None = None
        self.service: StorageService | None = None
        self.context: StorageContext
        self.http: httpx.AsyncClient | None = None

    async def open(self) -> None:
        self.listener = await listen(self.handle)
        self.configure()
        self.http = httpx.AsyncClient(base_url=self.url, timeout=60)

    async def close(self) -> None:
        assert self.listener is not None
        assert self.http is not None
        await self.http.aclose()
        await self.listener.close()
        self.pool.close()
        self.studio.close()

    @property
    def url(self) -> str:
        assert self.listener is not None
        return f"http://127.0.0.1:{self.listener.port}/storage/v1"

    def configure(self, **changes: Any) -> None:
        """Change settings from here on."""
        self.settings = msgspec.structs.replace(self.settings, **changes)
        self.context = StorageContext(
            pool=self.pool,
            ring=self.ring,
            clock=self.clock,
            entropy=SystemEntropy(),
            settings=self.settings,
            blobs=LocalBlobs(self.root),
            external_url=self.url,
            studio=self.studio,
            s3_keys=S3Keys(
                access_key_id=ACCESS_KEY_ID,
                secret_access_key=SECRET_ACCESS_KEY,
                anonymous_keys=(self.keys.anon_key, self.keys.publishable_key),
                service_token=self.keys.service_role_key,
            ),
            report=self.reports.append,
        )
        self.service = StorageService(self.context)

    async def handle(self, request: Request) -> Response:
        assert self.service is not None
        caller = identify(request.headers, "storage", self.keys, self.clock.unix())
        return await self.service.handle(request, caller, request.raw_path.removeprefix("/storage/v1"))

    def token(self, subject: str, role: str = "authenticated", **claims: Any) -> str:
        """A user's access token."""
        return self.ring.sign({"sub": subject, "role": role, "exp": self.clock.unix() + 600, **claims})

    async def call(
        self, line: str, body: object = None, *, token: str | None = None, content: Any = None, **headers: str
    ) -> httpx.Response:
        """`POST /bucket` with a JSON body, or with raw content; by the secret key unless a token is given."""
        assert self.http is not None
        method, path = line.split(" ", 1)
        headers["authorization"] = f"Bearer {token or self.keys.service_role_key}"
        if body is not None:
            content = json.dumps(body)
            headers["content-type"] = "application/json"
        return await self.http.request(
            method,
            self.url + path,
            content=content,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )

    async def bucket(self, name: str = "things", **fields: Any) -> str:
        """A new bucket."""
        answer = await self.call("POST /bucket", {"name": name, **fields})
        assert answer.status_code == 200, (answer.text, self.reports)
        return name

    async def sql(self, user: str = "postgres") -> Connection:
        """A session of the database."""
        return await self.cluster.connect(user)

    def files(self) -> list[Path]:
        """All files that there are, finished or not."""
        return [path for path in self.root.rglob("*") if path.is_file()]


@pytest.fixture
async def store(supabase_templates: SupabaseTemplates, tmp_path: Path) -> AsyncIterator[StorageBackend]:
    """Storage over a fresh database of the newest version."""
    cluster = await supabase_templates.start(18)
    backend = StorageBackend(cluster, tmp_path / "objects")
    await backend.open()
    yield backend
    await backend.close()
    await supabase_templates.stop(cluster)
