"""The SQL port: a real worker process between real clients and a real Postgres."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import asyncpg
import msgspec
import pytest

from tests.kit.fix_gateway import Daemon, make_spec
from tests.kit.fix_postgres import PASSWORD, SUPERUSER, PlainCluster, plain_cluster
from toft.pg.connection import Connection, connect_by
from toft.pg.dial import TcpDialer
from toft.pg.sqlstate import ConnectionLost, PostgresError
from toft.protocol.worker import (
    AskUsage,
    Attach,
    BackendSpec,
    Detach,
    Failed,
    SetAwake,
    Usage,
)

SSL_REQUEST = struct.pack("!ii", 8, 80877103)
GSS_REQUEST = struct.pack("!ii", 8, 80877104)


async def open_session(spec: BackendSpec) -> Connection:
    return await connect_by(TcpDialer("127.0.0.1", spec.db_port), SUPERUSER, PASSWORD)


@asynccontextmanager
async def session(spec: BackendSpec) -> AsyncIterator[Connection]:
    connection = await open_session(spec)
    try:
        yield connection
    finally:
        connection.close()
        await connection.wait_closed()


async def usage_of(daemon: Daemon, spec: BackendSpec) -> tuple[int, float]:
    answer = await daemon.do(AskUsage)
    assert isinstance(answer, Usage)
    usage = answer.backends[spec.backend_id]
    return usage.sql_connections, usage.idle_seconds


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.01)


async def test_queries(plain_backend: BackendSpec) -> None:
    """Queries and answers go through, small and large, both ways."""
    async with session(plain_backend) as connection:
        assert await connection.query("select 1") == [["1"]]
        big = "x" * 20_000_000
        assert await connection.query("select $1", big) == [[big]]
        rows = await connection.query("select generate_series(1, 100000)")
        assert len(rows) == 100_000


async def test_other_driver(plain_backend: BackendSpec) -> None:
    """A driver that asks for TLS first, as most do, is told no and goes on."""
    connection = await asyncpg.connect(
        host="127.0.0.1", port=plain_backend.db_port, user=SUPERUSER, password=PASSWORD,
        database="postgres", ssl="prefer",
    )  # fmt: skip
    assert await connection.fetchval("select 41 + $1", 1) == 42
    await connection.close()


async def test_encryption_is_declined(plain_backend: BackendSpec) -> None:
    """SSLRequest and GSSENCRequest are answered by N, one after the other, in whatever pieces they come."""
    reader, writer = await asyncio.open_connection("127.0.0.1", plain_backend.db_port)
    for byte in GSS_REQUEST + SSL_REQUEST:
        writer.write(bytes([byte]))
        await writer.drain()
    async with asyncio.timeout(10):
        assert await reader.readexactly(2) == b"NN"
        writer.write(struct.pack("!ii", 8, 2 << 16))  # version 2
        refusal = await reader.read()
    assert refusal.startswith(b"E")
    assert b"C08P01\0" in refusal
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("raw", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + bytes(60), bytes(8)])
async def test_other_protocols(plain_backend: BackendSpec, raw: bytes) -> None:
    """What does not speak Postgres is told so and hung up on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", plain_backend.db_port)
    writer.write(raw)
    async with asyncio.timeout(10):
        assert b"Postgres protocol" in await reader.read()
    writer.close()
    await writer.wait_closed()


async def test_cancel_request(plain_backend: BackendSpec) -> None:
    """A CancelRequest reaches the server and cancels the query."""
    async with session(plain_backend) as connection:
        waiting = asyncio.get_running_loop().create_task(connection.query("select pg_sleep(600)"))
        async with asyncio.timeout(20):
            while not waiting.done():
                await asyncio.sleep(0.02)
                await connection.cancel()
        with pytest.raises(PostgresError) as cancelled:
            await waiting
        assert cancelled.value.sqlstate == "57014"


async def test_limit(daemon: Daemon, plain_postgres: PlainCluster) -> None:
    """One connection too many is refused by name; one that ends makes room; cancels do not count."""
    spec = make_spec(plain_postgres.socket_path, max_sql_connections=2)
    await daemon.do(Attach, spec)
    first, second = await open_session(spec), await open_session(spec)
    with pytest.raises(PostgresError) as refused:
        await open_session(spec)
    assert (refused.value.sqlstate, refused.value.severity) == ("53300", "FATAL")
    await first.cancel()
    second.close()
    async with asyncio.timeout(20):
        while (await usage_of(daemon, spec))[0] > 1:
            await asyncio.sleep(0.01)
    async with session(spec) as third:
        assert await third.query("select 1") == [["1"]]
    first.close()


async def test_slow_client(plain_backend: BackendSpec) -> None:
    """A client that does not read makes the server wait, and gets everything when it does."""
    reader, writer = await asyncio.open_connection("127.0.0.1", plain_backend.db_port, limit=1)
    async with session(plain_backend) as connection:
        waiting = asyncio.get_running_loop().create_task(
            connection.query("select repeat('y', 1000) from generate_series(1, 50000)")
        )
        await asyncio.sleep(0)
        transport = connection._transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        await asyncio.sleep(0.2)
        assert not waiting.done()
        transport.resume_reading()
        assert len(await waiting) == 50_000
    del reader
    writer.close()


async def test_detach(daemon: Daemon, plain_backend: BackendSpec) -> None:
    """Detaching cuts sessions at once, says why to those between two queries, and frees the port."""
    idle = await open_session(plain_backend)
    busy = await open_session(plain_backend)
    running = asyncio.get_running_loop().create_task(busy.query("select 1, pg_sleep(600)"))
    await asyncio.sleep(0.05)
    lost: list[str] = []
    idle.on_notice = lambda fields: lost.append(fields["M"])
    await daemon.do(Detach, plain_backend.backend_id)
    with pytest.raises((ConnectionLost, PostgresError)):
        await running
    await until(lambda: idle.is_broken)
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", plain_backend.db_port)
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", plain_backend.http_port)
    await daemon.do(Detach, plain_backend.backend_id)  # once more is fine
    await daemon.do(Attach, plain_backend)  # at once, on the same ports
    async with session(plain_backend) as connection:
        assert await connection.query("select 1") == [["1"]]


async def test_reason_of_the_cut(daemon: Daemon, plain_backend: BackendSpec) -> None:
    """A session that waits for its next query is told FATAL 57P01 before the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", plain_backend.db_port)
    # An incomplete opening: nobody is in the middle of a message.
    writer.write(struct.pack("!ii", 100, 3 << 16))
    await daemon.do(Detach, plain_backend.backend_id)
    async with asyncio.timeout(10):
        said = await reader.read()
    assert b"C57P01\0" in said
    assert b"this backend is gone" in said
    writer.close()


async def test_asleep(daemon: Daemon, plain_postgres: PlainCluster) -> None:
    """Connections to a sleeping backend ask once for it to be woken, and go on when it is."""
    spec = make_spec(plain_postgres.socket_path, is_awake=False)
    await daemon.do(Attach, spec)
    loop = asyncio.get_running_loop()
    waiting = [loop.create_task(open_session(spec)) for _ in range(3)]
    assert await daemon.wakes.get() == spec.backend_id
    await asyncio.sleep(0.05)
    assert daemon.wakes.empty()
    assert not any(task.done() for task in waiting)
    await daemon.do(SetAwake, spec.backend_id, is_awake=True)
    async with asyncio.timeout(20):
        sessions = await asyncio.gather(*waiting)
    for connection in sessions:
        assert await connection.query("select 1") == [["1"]]
    # Going to sleep cuts them.
    await daemon.do(SetAwake, spec.backend_id, is_awake=False)
    await until(lambda: all(connection.is_broken for connection in sessions))


async def test_will_not_wake(daemon: Daemon, plain_postgres: PlainCluster) -> None:
    """When the postmaster will not come back, those who wait and those who come are told why."""
    spec = make_spec(plain_postgres.socket_path, is_awake=False)
    await daemon.do(Attach, spec)
    waiting = asyncio.get_running_loop().create_task(open_session(spec))
    await daemon.wakes.get()
    await daemon.do(SetAwake, spec.backend_id, is_awake=False, failure="its disk is full")
    for attempt in (waiting, asyncio.get_running_loop().create_task(open_session(spec))):
        with pytest.raises(PostgresError) as refused:
            await attempt
        assert (refused.value.sqlstate, refused.value.message) == ("57P03", "its disk is full")


async def test_gives_up_waiting(daemon: Daemon, plain_postgres: PlainCluster) -> None:
    """A client that leaves while it waits leaves nothing behind."""
    spec = make_spec(plain_postgres.socket_path, is_awake=False)
    await daemon.do(Attach, spec)
    waiting = asyncio.get_running_loop().create_task(open_session(spec))
    await daemon.wakes.get()
    assert (await usage_of(daemon, spec))[0] == 1
    waiting.cancel()
    async with asyncio.timeout(20):
        await asyncio.wait([waiting])
        while (await usage_of(daemon, spec))[0]:
            await asyncio.sleep(0.01)


async def test_postmaster_died(daemon: Daemon) -> None:
    """When nobody answers behind the port, the daemon is asked; the connection goes on after the restart."""
    with plain_cluster() as cluster:
        spec = make_spec(cluster.socket_path)
        await daemon.do(Attach, spec)
        connection = await open_session(spec)
        cluster.stop()
        await until(lambda: connection.is_broken)
        waiting = asyncio.get_running_loop().create_task(open_session(spec))
        assert await daemon.wakes.get() == spec.backend_id
        cluster.start()
        await daemon.do(SetAwake, spec.backend_id, is_awake=True)
        assert await (await waiting).query("select 1") == [["1"]]
        (await waiting).close()


async def test_reset(daemon: Daemon, plain_backend: BackendSpec) -> None:
    """Attached again with another socket, the same port leads to the other cluster; old sessions are cut."""
    old = await open_session(plain_backend)
    await old.query("create table only_in_the_first()")
    with plain_cluster() as cluster:
        await daemon.do(Attach, msgspec.structs.replace(plain_backend, socket_path=cluster.socket_path))
        await until(lambda: old.is_broken)
        async with session(plain_backend) as connection:
            assert await connection.query("select to_regclass('only_in_the_first')") == [[None]]
        await daemon.do(Attach, plain_backend)
        async with session(plain_backend) as connection:
            await connection.script("drop table only_in_the_first")


async def test_idle_time(daemon: Daemon, plain_backend: BackendSpec) -> None:
    """Bytes that go through make a backend busy; an open session alone does not."""
    async with session(plain_backend) as connection:
        await asyncio.sleep(0.1)
        sessions, idle = await usage_of(daemon, plain_backend)
        assert sessions == 1
        assert idle >= 0.05
        await connection.query("select 1")
        assert (await usage_of(daemon, plain_backend))[1] < idle


async def test_taken_port(daemon: Daemon, plain_backend: BackendSpec) -> None:
    """A port that another process holds is named, and the other port is not kept either."""
    spec = make_spec("/nowhere", "b_two", db_port=plain_backend.db_port)
    answer = await daemon.ask(Attach, spec)
    assert isinstance(answer, Failed)
    assert answer.code == "port-taken"
    assert str(plain_backend.db_port) in answer.message
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", spec.http_port)
    server.close()
    await server.wait_closed()
