"""A gateway worker as a process of its own, and the daemon's side of its channel."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.kit.fix_postgres import PASSWORD, PlainCluster, find_free_port
from toft.protocol.worker import (
    AskUsage,
    Attach,
    BackendSpec,
    Detach,
    Failed,
    FromWorker,
    Hello,
    JwtKey,
    Secrets,
    ServiceSettings,
    ToWorker,
    Usage,
    Wake,
)
from toft.tokens.apikey import make_legacy_key, make_publishable, make_secret
from toft.tokens.keys import new_secret, new_signing_key
from toft.world import SystemEntropy

_decode = msgspec.json.Decoder(FromWorker).decode


class Daemon:
    """What toftd is to a worker: one connection, questions and answers, and notices in between."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[FromWorker]] = {}
        self.wakes: asyncio.Queue[str] = asyncio.Queue()
        self.hung_up = asyncio.Event()
        self.greeting: FromWorker | None = None
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def ask(self, kind: type[ToWorker], *args: Any, **fields: Any) -> FromWorker:
        """Send one message and wait for its answer, for a while."""
        seq = next(self._numbers)
        answer = self._answers[seq] = asyncio.get_running_loop().create_future()
        raw = msgspec.json.encode(kind(seq, *args, **fields))
        self._writer.write(len(raw).to_bytes(4, "big") + raw)
        async with asyncio.timeout(20):
            return await answer

    async def do(self, kind: type[ToWorker], *args: Any, **fields: Any) -> FromWorker:
        """`ask`, and no is no answer."""
        answer = await self.ask(kind, *args, **fields)
        assert not isinstance(answer, Failed), answer
        return answer

    async def close(self) -> None:
        self._writer.close()
        self._reading.cancel()
        await asyncio.wait([self._reading])

    async def _read(self) -> None:
        try:
            while True:
                size = int.from_bytes(await self._reader.readexactly(4), "big")
                message = _decode(await self._reader.readexactly(size))
                if isinstance(message, Wake):
                    self.wakes.put_nowait(message.backend_id)
                else:
                    self._answers.pop(message.seq).set_result(message)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            self.hung_up.set()


class Worker:
    """A worker process, started and accepting."""

    def __init__(self, folder: Path, prefix: Sequence[str] = ()) -> None:
        self.socket_path = folder / "worker.sock"
        module = [sys.executable, "-m", "toft.gateway.worker"]
        options = ["--socket", str(self.socket_path), "--index", "0"]
        self.process = subprocess.Popen([*prefix, *module, *options])
        deadline = time.monotonic() + 60
        while not self.socket_path.exists():
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)

    async def connect(self) -> Daemon:
        """A daemon's connection, greeted."""
        reader, writer = await asyncio.open_unix_connection(str(self.socket_path))
        daemon = Daemon(reader, writer)
        daemon.greeting = await daemon.do(Hello, "test")
        return daemon

    def close(self) -> None:
        self.process.terminate()
        assert self.process.wait(20) == 0


@contextlib.contextmanager
def running_worker() -> Generator[Worker]:
    """A worker process of one's own."""
    with tempfile.TemporaryDirectory(prefix="toft-gw-") as folder:
        worker = Worker(Path(folder))
        try:
            yield worker
        finally:
            worker.close()


def make_secrets(passwords: dict[str, str]) -> Secrets:
    """Fresh keys of a project."""
    entropy = SystemEntropy()
    secret = new_secret(entropy)
    key = new_signing_key(entropy)
    return Secrets(
        jwt_secret=secret,
        jwt_keys=(JwtKey(kid=key.kid, alg=key.alg, jwk=key.jwk, signs=True),),
        anon_key=make_legacy_key("anon", secret, 1_700_000_000),
        service_role_key=make_legacy_key("service_role", secret, 1_700_000_000),
        publishable_key=make_publishable(entropy),
        secret_key=make_secret(entropy),
        s3_access_key_id="id",
        s3_secret_access_key="key",
        passwords=passwords,
    )


def make_spec(socket_path: str, name: str = "b_one", password: str = PASSWORD, **changes: Any) -> BackendSpec:
    """A backend on free ports in front of that postmaster, where every role has the same password."""
    roles = ("authenticator", "postgres", "supabase_admin", "supabase_auth_admin", "supabase_storage_admin")
    spec = BackendSpec(
        backend_id=name,
        template_key="t",
        http_port=find_free_port(),
        db_port=find_free_port(),
        socket_path=socket_path,
        objects_path="/nowhere",
        settings=ServiceSettings(),
        secrets=make_secrets(dict.fromkeys(roles, password)),
    )
    return msgspec.structs.replace(spec, **changes)


@pytest.fixture(scope="session")
def shared_worker() -> Iterator[Worker]:
    """A worker process for all tests that do not end it."""
    with running_worker() as worker:
        yield worker


@pytest.fixture
async def daemon(shared_worker: Worker) -> AsyncIterator[Daemon]:
    """A daemon's connection to the shared worker; what it attached is detached afterwards."""
    connected = await shared_worker.connect()
    yield connected
    if connected.hung_up.is_set():
        await connected.close()
        connected = await shared_worker.connect()
    usage = await connected.do(AskUsage)
    assert isinstance(usage, Usage)
    for name in usage.backends:
        await connected.do(Detach, name)
    await connected.close()


@pytest.fixture
async def plain_backend(daemon: Daemon, plain_postgres: PlainCluster) -> BackendSpec:
    """The plain cluster, attached: its SQL port is that of a backend, its database is bare."""
    spec = make_spec(plain_postgres.socket_path)
    await daemon.do(Attach, spec)
    return spec
