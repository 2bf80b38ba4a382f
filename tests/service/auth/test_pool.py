"""Auth's connections come and go without standing in anybody's way."""

from __future__ import annotations

import asyncio

from tests.kit.fix_auth import AuthBackend
from tests.kit.fix_supabase import PASSWORD
from toft.auth.context import DATABASE_ROLE
from toft.pg.pool import Pool
from toft.pg.typed import connect_typed


async def test_idle_connections_are_closed_and_the_loop_goes_on(auth_backend: AuthBackend):
    """When the idle time is over the pool is empty, and a request afterwards opens a new connection."""
    path = auth_backend.cluster.socket_path
    pool = Pool(lambda: connect_typed(path, DATABASE_ROLE, PASSWORD), max_size=3, idle_seconds=0.05)
    async with pool.lend() as first, pool.lend() as second:
        assert await first.fetch_value("select 1") == await second.fetch_value("select 1")
    async with asyncio.timeout(10):
        while pool.size:
            await asyncio.sleep(0.01)
    async with pool.lend() as third:
        assert await third.fetch_value("select 1") == 1
    pool.close()
    assert pool.size == 0
