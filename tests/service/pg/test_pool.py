"""The pool on a real Postgres: nothing while idle, never too many, and no leak under cancellation."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from tests.kit.fix_postgres import PASSWORD, SUPERUSER, PlainCluster
from toft.pg.connection import Connection, connect
from toft.pg.pool import Pool, PoolClosed
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable


@pytest.fixture
async def pool(plain_postgres: PlainCluster) -> AsyncIterator[Pool[Connection]]:
    made = Pool(lambda: connect(plain_postgres.socket_path, SUPERUSER, PASSWORD), max_size=3)
    yield made
    made.close()


async def ask(pool: Pool[Connection], sql: str = "select 1") -> str | None:
    async with pool.lend() as connection:
        return (await connection.query(sql))[0][0]


async def test_grows_on_demand(pool: Pool[Connection]) -> None:
    """Nothing exists before it is needed; then never more than allowed; and the last used goes first."""
    assert pool.size == 0
    await ask(pool)
    await ask(pool)
    assert (pool.size, pool.in_use) == (1, 0)
    answers = await asyncio.gather(*(ask(pool, "select pg_sleep(0.001)::text || 'x'") for _ in range(40)))
    assert answers == ["x"] * 40
    assert (pool.size, pool.in_use) == (3, 0)
    async with pool.lend() as first:
        pass
    async with pool.lend() as second:
        assert second is first


async def test_cancellation_leaks_nothing(pool: Pool[Connection]) -> None:
    """Tasks cancelled at any moment, the hand-over's own tick included, take no connection with them."""
    loop = asyncio.get_running_loop()
    dice = random.Random(7)
    async with asyncio.timeout(60):
        for _ in range(150):
            tasks = [loop.create_task(ask(pool)) for _ in range(12)]
            for task in dice.sample(tasks, 8):
                for _ in range(dice.randrange(4)):
                    await asyncio.sleep(0)
                task.cancel()
            await asyncio.wait(tasks)
            assert all(task.cancelled() or task.result() == "1" for task in tasks)
        assert await asyncio.gather(*(ask(pool) for _ in range(9))) == ["1"] * 9
    assert pool.size <= 3


async def test_cancelled_in_the_tick_of_hand_over(plain_postgres: PlainCluster) -> None:
    """A waiter that is handed the connection and cancelled in one tick passes it on."""
    pool = Pool(lambda: connect(plain_postgres.socket_path, SUPERUSER, PASSWORD), max_size=1)
    loan = pool.lend()
    await loan.__aenter__()
    waiting = asyncio.get_running_loop().create_task(ask(pool))
    await asyncio.sleep(0)
    await loan.__aexit__(None, None, None)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(10):
        assert await ask(pool) == "1"
    pool.close()


async def test_cancelled_query_settles_before_it_is_lent_again(pool: Pool[Connection]) -> None:
    """A connection whose query was cancelled comes back when it is quiet, and others are served meanwhile."""
    tasks = [asyncio.get_running_loop().create_task(ask(pool, "select pg_sleep(600)")) for _ in range(3)]
    while pool.in_use < 3 or pool.size < 3:
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    async with asyncio.timeout(20):
        await asyncio.wait(tasks)
        assert await asyncio.gather(*(ask(pool) for _ in range(6))) == ["1"] * 6


async def test_open_transaction_is_not_lent_on(pool: Pool[Connection]) -> None:
    """A connection that comes back inside a transaction is closed."""
    async with pool.lend() as connection:
        await connection.script("begin")
    assert connection.is_broken
    assert pool.size == 0
    assert await ask(pool) == "1"


async def test_lost_connections_make_room(pool: Pool[Connection]) -> None:
    """Connections that the server ended are replaced."""
    async with pool.lend() as first, pool.lend() as second:
        await first.query("select pg_terminate_backend($1)", str(second.backend_pid))
    async with asyncio.timeout(10):
        while pool.size > 1:
            await asyncio.sleep(0)
        assert await asyncio.gather(*(ask(pool) for _ in range(6))) == ["1"] * 6


async def test_failed_dials_wake_those_who_wait(plain_postgres: PlainCluster) -> None:
    """When connecting fails, each who waits learns it, and the next try may succeed."""
    path = plain_postgres.socket_path + ".not-yet"
    places = [path]
    pool = Pool(lambda: connect(places[0], SUPERUSER, PASSWORD), max_size=2)
    async with asyncio.timeout(10):
        answers = await asyncio.gather(*(ask(pool) for _ in range(7)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Unreachable] * 7
    assert pool.size == 0
    places[0] = plain_postgres.socket_path
    assert await ask(pool) == "1"
    pool.close()


async def test_full_server(plain_postgres: PlainCluster) -> None:
    """When the server has no room for one more, those that there are serve all; without any it is said."""
    admin = await connect(plain_postgres.socket_path, SUPERUSER, PASSWORD)
    await admin.script("create role few login password 'few' connection limit 1")
    pool = Pool(lambda: connect(plain_postgres.socket_path, "few", "few", "postgres"), max_size=4)
    async with asyncio.timeout(20):
        async with pool.lend():
            asking = [asyncio.get_running_loop().create_task(ask(pool)) for _ in range(8)]
            await asyncio.sleep(0.05)
        assert await asyncio.gather(*asking) == ["1"] * 8
        async with pool.lend():
            other = Pool(lambda: connect(plain_postgres.socket_path, "few", "few", "postgres"))
            with pytest.raises(PostgresError) as full:
                await ask(other)
            assert full.value.sqlstate == "53300"
    pool.close()
    await admin.script("drop role few")
    admin.close()


async def test_idle_connections_close(plain_postgres: PlainCluster) -> None:
    """After the idle time nothing is left."""
    pool = Pool(lambda: connect(plain_postgres.socket_path, SUPERUSER, PASSWORD), 3, idle_seconds=0.02)
    await asyncio.gather(*(ask(pool) for _ in range(6)))
    async with asyncio.timeout(10):
        while pool.size:
            await asyncio.sleep(0.01)
    assert await ask(pool) == "1"
    pool.close()


async def test_a_connection_kept_free_stays_until_it_was_used(plain_postgres: PlainCluster) -> None:
    """It outlives others that are idle, and ages as they do once somebody had it."""
    pool = Pool(lambda: connect(plain_postgres.socket_path, SUPERUSER, PASSWORD), 3, idle_seconds=0.02)
    try:
        async with pool.lend() as kept:
            pass
        pool.keep_free(900)
        async with pool.lend(), pool.lend():
            pool.keep_free(900)  # nothing lies free: nothing is kept
            async with pool.lend() as third:
                pass
            pool.keep_free(900)
        async with asyncio.timeout(10):
            while pool.size > 1:
                await asyncio.sleep(0.01)
        async with pool.lend() as last:
            assert last is third
            assert last is not kept
        async with asyncio.timeout(10):
            while pool.size:
                await asyncio.sleep(0.01)
    finally:
        pool.close()


async def test_close(pool: Pool[Connection]) -> None:
    """Closing fails those who use a connection, those who wait for one and those who come later."""
    tasks = [asyncio.get_running_loop().create_task(ask(pool, "select pg_sleep(600)")) for _ in range(5)]
    while pool.size < 3 or pool.in_use < 3:
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)
    pool.close()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(answer, ConnectionLost) for answer in answers)
    with pytest.raises(PoolClosed):
        await ask(pool)
    assert pool.size == 0


async def test_drop_connections(pool: Pool[Connection]) -> None:
    """Dropping what is open leaves a pool that opens new connections."""
    await ask(pool)
    pool.drop_connections()
    assert pool.size == 0
    assert await ask(pool) == "1"


async def test_patience_ends(plain_postgres: PlainCluster) -> None:
    """Who will wait only so long is told in time, whoever else waits before it and for how long."""
    pool = Pool(lambda: connect(plain_postgres.socket_path, SUPERUSER, PASSWORD), max_size=1)
    async with asyncio.timeout(20):
        async with pool.lend():
            patient = asyncio.get_running_loop().create_task(ask(pool))
            await asyncio.sleep(0)
            outcomes = await asyncio.gather(*(pool.take(0.05) for _ in range(3)), return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [TimeoutError] * 3
            waiting = asyncio.get_running_loop().create_task(pool.take(60))
            await asyncio.sleep(0)
        assert await patient == "1"
        pool.give_back(await waiting)
    assert pool.in_use == 0
    pool.close()
