"""The worker as a process: what a daemon may do to it, and what it survives."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.kit.fix_gateway import Daemon, Worker, make_spec, running_worker
from tests.kit.fix_postgres import PASSWORD, SUPERUSER, PlainCluster
from toft import __version__
from toft.pg.connection import connect_by
from toft.pg.dial import TcpDialer
from toft.protocol.worker import (
    AskUsage,
    Attach,
    Attached,
    BackendSpec,
    Detach,
    Done,
    Failed,
    SetAwake,
    Shutdown,
    Usage,
)


async def ask_one(spec: BackendSpec) -> object:
    connection = await connect_by(TcpDialer("127.0.0.1", spec.db_port), SUPERUSER, PASSWORD)
    answer = await connection.query("select 1")
    connection.close()
    await connection.wait_closed()
    return answer


async def test_new_daemon_takes_over(
    daemon: Daemon, shared_worker: Worker, plain_backend: BackendSpec
) -> None:
    """A second daemon learns what is attached and takes over; the first is hung up on."""
    second = await shared_worker.connect()
    assert isinstance(second.greeting, Attached)
    assert second.greeting.version == __version__
    assert second.greeting.pid == shared_worker.process.pid
    ports = plain_backend.http_port, plain_backend.db_port
    assert second.greeting.backends == {plain_backend.backend_id: ports}
    async with asyncio.timeout(10):
        await daemon.hung_up.wait()
    assert await ask_one(plain_backend) == [["1"]]
    await second.close()


async def test_serves_without_daemon(shared_worker: Worker, plain_postgres: PlainCluster) -> None:
    """When the daemon is gone everything is served on; the next one is asked for what waits to be woken."""
    first = await shared_worker.connect()
    awake = make_spec(plain_postgres.socket_path, "b_awake")
    asleep = make_spec(plain_postgres.socket_path, "b_asleep", is_awake=False)
    await first.do(Attach, awake)
    await first.do(Attach, asleep)
    await first.close()
    assert await ask_one(awake) == [["1"]]
    waiting = asyncio.get_running_loop().create_task(ask_one(asleep))
    await asyncio.sleep(0.1)
    second = await shared_worker.connect()
    async with asyncio.timeout(10):
        assert await second.wakes.get() == "b_asleep"
    await second.do(SetAwake, "b_asleep", is_awake=True)
    assert await waiting == [["1"]]
    await second.close()
    third = await shared_worker.connect()
    for name in ("b_awake", "b_asleep"):
        await third.do(Detach, name)
    await third.close()


@pytest.mark.parametrize(
    "raw", [b"\xff\xff\xff\xff", b"\0\0\0\x02{}", b"\0\0\0\x09not json!", b'\0\0\0\x0f{"type":"Nope"}']
)
async def test_garbage_on_the_channel(shared_worker: Worker, raw: bytes) -> None:
    """What is no message ends that connection and nothing else."""
    reader, writer = await asyncio.open_unix_connection(str(shared_worker.socket_path))
    writer.write(raw)
    async with asyncio.timeout(10):
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await reader.readexactly(1)
    writer.close()
    daemon = await shared_worker.connect()
    await daemon.close()


async def test_messages_in_pieces(shared_worker: Worker) -> None:
    """A message may arrive byte by byte, and two in one piece."""
    reader, writer = await asyncio.open_unix_connection(str(shared_worker.socket_path))
    said = b"".join(
        struct.pack("!I", len(text)) + text
        for text in (b'{"type":"AskUsage","seq":1}', b'{"type":"AskUsage","seq":2}')
    )
    for byte in said[:30]:
        writer.write(bytes([byte]))
        await writer.drain()
    writer.write(said[30:])
    async with asyncio.timeout(10):
        for number in (1, 2):
            size = int.from_bytes(await reader.readexactly(4), "big")
            assert b'"seq":%d' % number in await reader.readexactly(size)
    writer.close()
    await writer.wait_closed()


async def test_refusals(daemon: Daemon, plain_backend: BackendSpec) -> None:
    """An unknown backend is named; attaching the same again changes nothing."""
    answer = await daemon.ask(SetAwake, "b_none", is_awake=True)
    assert isinstance(answer, Failed)
    assert (answer.code, "b_none" in answer.message) == ("unknown-backend", True)
    assert isinstance(await daemon.do(Attach, plain_backend), Done)
    assert await ask_one(plain_backend) == [["1"]]


async def test_shutdown() -> None:
    """Told to end, a worker answers, closes everything and is gone."""
    with running_worker() as worker:
        daemon = await worker.connect()
        spec = make_spec("/nowhere")
        await daemon.do(Attach, spec)
        assert isinstance(await daemon.do(Shutdown), Done)
        await asyncio.to_thread(worker.process.wait, 20)
        await daemon.close()
        for port in (spec.http_port, spec.db_port):
            with pytest.raises(OSError):
                await asyncio.open_connection("127.0.0.1", port)


async def test_limits_of_the_process(shared_worker: Worker) -> None:
    """It may open as many files as is allowed at all, writes no core, and its socket is its owner's."""
    pid = shared_worker.process.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    assert soft == hard
    assert resource.prlimit(pid, resource.RLIMIT_CORE) == (0, 0)
    assert stat.S_IMODE(shared_worker.socket_path.stat().st_mode) == 0o600


async def test_second_worker_replaces_a_dead_one(plain_postgres: PlainCluster) -> None:
    """After kill -9 its socket file is left; the next worker takes its place and the ports are free."""
    with tempfile.TemporaryDirectory(prefix="toft-gw-") as folder:
        first = Worker(Path(folder))
        daemon = await first.connect()
        spec = make_spec(plain_postgres.socket_path)
        await daemon.do(Attach, spec)
        first.process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(first.process.wait, 20)
        async with asyncio.timeout(10):
            await daemon.hung_up.wait()
        await daemon.close()
        left = first.socket_path.stat().st_ino
        second = await asyncio.to_thread(_start_another, Path(folder), left)
        daemon = await second.connect()
        await daemon.do(Attach, spec)
        assert await ask_one(spec) == [["1"]]
        await daemon.close()
        second.close()


def _start_another(folder: Path, old_inode: int) -> Worker:
    worker = Worker(folder)
    deadline = time.monotonic() + 60
    while worker.socket_path.stat().st_ino == old_inode:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return worker


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
async def test_as_another_user() -> None:
    """It runs as a user of its own that owns nothing but its folder."""
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
    if subprocess.run([*nobody, sys.executable, "-c", "import toft"], capture_output=True).returncode:
        pytest.skip("other users cannot read this Python or this checkout")
    with tempfile.TemporaryDirectory(prefix="toft-gw-") as folder:
        os.chown(folder, 65534, 65534)
        worker = Worker(Path(folder), nobody)
        assert worker.socket_path.stat().st_uid == 65534
        daemon = await worker.connect()
        await daemon.do(Attach, make_spec("/nowhere"))
        await daemon.close()
        worker.close()


async def test_many_backends(daemon: Daemon) -> None:
    """Hundreds of idle backends live in one worker, each counted for itself."""
    for number in range(200):
        await daemon.do(Attach, make_spec("/nowhere", f"b_{number}"))
    usage = await daemon.do(AskUsage)
    assert isinstance(usage, Usage)
    assert len(usage.backends) == 200
    assert {use.requests for use in usage.backends.values()} == {0}
