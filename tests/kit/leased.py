"""What tests do with a lease: ask its database as the tenant or from within, copy it, return it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import asyncpg

from tests.kit.fix_daemon import RunningDaemon

#: asyncpg has no types of its own
_connect: Any = cast(Any, asyncpg).connect


@asynccontextmanager
async def session(lease: dict[str, Any]) -> AsyncGenerator[Any]:
    """A session of the tenant on the SQL port."""
    connection = await _connect(
        host=lease["host"],
        port=lease["db_port"],
        user=lease["user"],
        password=lease["password"],
        database=lease["database"],
        ssl=False,
    )
    try:
        yield connection
    finally:
        await connection.close()


async def query(lease: dict[str, Any], sql: str, *args: Any) -> Any:
    """One value, by a session of its own."""
    async with session(lease) as connection:
        return await connection.fetchval(sql, *args)


@asynccontextmanager
async def admin(
    toftd: RunningDaemon, lease: dict[str, Any], secrets_of: dict[str, Any] | None = None
) -> AsyncGenerator[Any]:
    """A session of the superuser, on the server's own socket."""
    [(secrets,)] = toftd.rows("SELECT secrets FROM backend WHERE id = ?", (secrets_of or lease)["backend_id"])
    connection = await _connect(
        host=str(toftd.run / "b" / lease["backend_id"]),
        user="supabase_admin",
        password=json.loads(secrets)["passwords"]["supabase_admin"],
        database="postgres",
    )
    try:
        yield connection
    finally:
        await connection.close()


async def fork(toftd: RunningDaemon, lease: dict[str, Any], **wish: Any) -> dict[str, Any]:
    """Fork a lease: the daemon's whole answer."""
    answer = await toftd.ask("POST", f"/v1/leases/{lease['id']}/fork", wish)
    assert answer.status == 201, answer.body
    return answer.json
