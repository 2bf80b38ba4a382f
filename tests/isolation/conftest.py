"""Leases of one real daemon, and a way in as the superuser that no tenant has."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from tests.kit.fix_daemon import RunningDaemon

type Lease = dict[str, Any]
type Session = asyncpg.Connection[Any]


@pytest.fixture
async def pair(toftd: RunningDaemon) -> tuple[Lease, Lease]:
    """Two live leases, A and B."""
    return await toftd.take(label="a"), await toftd.take(label="b")


@pytest.fixture
async def lease(toftd: RunningDaemon) -> Lease:
    """One live lease."""
    return await toftd.take()


@pytest.fixture
async def superuser(toftd: RunningDaemon) -> AsyncIterator[Callable[[Lease], Awaitable[Session]]]:
    """Opens a session as a backend's superuser: what an attacker would have after a hole in Postgres."""
    sessions: list[Session] = []

    async def enter(lease: Lease) -> Session:
        [(secrets,)] = toftd.rows("SELECT secrets FROM backend WHERE id = ?", lease["backend_id"])
        session = await asyncpg.connect(
            host=str(toftd.run / "b" / lease["backend_id"]),
            user="supabase_admin",
            password=json.loads(secrets)["passwords"]["supabase_admin"],
            database="postgres",
        )
        sessions.append(session)
        return session

    yield enter
    for session in sessions:
        await session.close()
