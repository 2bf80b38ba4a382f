"""The typed driver behind its adapter."""

from __future__ import annotations

import asyncio

import pytest

from tests.kit.fix_postgres import PASSWORD, SUPERUSER, PlainCluster
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.pg.typed import connect_typed, typed_pool


async def test_values_and_errors(plain_postgres: PlainCluster) -> None:
    """Values are Python's; errors are ours, with the same fields as the other driver's."""
    pool = await typed_pool(plain_postgres.socket_path, SUPERUSER, PASSWORD)
    async with pool.lend() as connection:
        row = await connection.fetch_row("select $1::int as a, array['x'] as b", 3)
        assert row is not None
        assert dict(row) == {"a": 3, "b": ["x"]}
        assert await connection.fetch_value("select count(*) from generate_series(1, 5)") == 5
        assert (
            await connection.execute("create temporary table pair(a int primary key, b int)")
            == "CREATE TABLE"
        )
        await connection.execute_many("insert into pair values ($1, $2)", [(1, 2), (3, 4)])
        assert [tuple(r.values()) for r in await connection.fetch("select * from pair order by 1")] == [
            (1, 2),
            (3, 4),
        ]
        with pytest.raises(PostgresError) as failed:
            async with connection.transaction():
                await connection.execute("delete from pair")
                await connection.execute("insert into pair values (1, 1), (1, 2)")
        assert (failed.value.sqlstate, failed.value.table, failed.value.constraint) == (
            "23505",
            "pair",
            "pair_pkey",
        )
        assert failed.value.detail == "Key (a)=(1) already exists."
        assert await connection.fetch_value("select count(*) from pair") == 2
        with pytest.raises(PostgresError) as refused:
            async with connection.transaction(read_only=True):
                await connection.execute("create table never()")
        assert refused.value.sqlstate == "25006"
    assert pool.size == 1
    pool.close()


async def test_cancelled(plain_postgres: PlainCluster) -> None:
    """A cancelled query leaves a usable connection in the pool."""
    pool = await typed_pool(plain_postgres.socket_path, SUPERUSER, PASSWORD, max_size=1)

    async def sleep() -> None:
        async with pool.lend() as connection, connection.transaction():
            await connection.fetch("select pg_sleep(600)")

    task = asyncio.get_running_loop().create_task(sleep())
    await asyncio.sleep(0.05)
    task.cancel()
    async with asyncio.timeout(20):
        await asyncio.wait([task])
        async with pool.lend() as connection:
            assert await connection.fetch_value("select 1") == 1
    pool.close()


async def test_failures(plain_postgres: PlainCluster) -> None:
    """Unreachable, refused and lost are told apart as with the other driver."""
    with pytest.raises(Unreachable):
        await connect_typed("/nowhere/.s.PGSQL.5432", SUPERUSER, PASSWORD)
    with pytest.raises(PostgresError) as refused:
        await connect_typed(plain_postgres.socket_path, SUPERUSER, "no")
    assert refused.value.sqlstate == "28P01"
    connection = await connect_typed(plain_postgres.socket_path, SUPERUSER, PASSWORD)
    lost: list[bool] = []
    connection.on_lost = lambda: lost.append(True)
    connection.close()
    with pytest.raises(ConnectionLost):
        await connection.fetch("select 1")
    assert connection.is_broken
    async with asyncio.timeout(10):
        while not lost:
            await asyncio.sleep(0)
    assert lost == [True]
