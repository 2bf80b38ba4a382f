"""Clears away what nobody will ask for any more: bytes without a row, uploads that were never finished.

A crash between bytes and row leaves bytes; so does SQL that deletes rows by itself, and a database that
was put back to an earlier point. Only what has been alone for a while is taken: bytes come before their row.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.storage import records
from toft.storage.context import StorageContext
from toft.storage.records import SERVICE

#: how long bytes may wait for their row
GRACE_SECONDS: Final = 3600.0
#: how long an upload in several requests may take
UPLOAD_SECONDS: Final = 24 * 3600.0
#: how often a backend that is used is swept
EVERY_SECONDS: Final = 3600.0
_AT_ONCE: Final = 5000


class Swept(msgspec.Struct, frozen=True):
    """How much was cleared away."""

    versions: int = 0
    drafts: int = 0
    uploads: int = 0


class Sweeper:
    """Sweeps one backend now and then, while it is used anyway: a sleeping one is not woken for that."""

    def __init__(self, context: StorageContext) -> None:
        self._context = context
        #: a crash before was long enough ago only after a while of use
        self._last = context.clock.mono()
        self._sweeping: asyncio.Task[None] | None = None

    def maybe_begin(self) -> None:
        """Begin a sweep in the background if the last one is long ago."""
        now = self._context.clock.mono()
        if self._sweeping is None and now - self._last >= EVERY_SECONDS:
            self._last = now
            self._sweeping = asyncio.ensure_future(self._sweep())

    async def _sweep(self) -> None:
        try:
            await sweep(self._context)
        except (PostgresError, ConnectionLost, Unreachable, OSError) as error:
            self._context.report(f"storage: sweeping: {error}")
        finally:
            self._sweeping = None


async def sweep(context: StorageContext) -> Swept:
    """Clear away what is old enough and belongs to nothing."""
    uploads = await _end_uploads(context)
    now = context.clock.unix()
    drafts: list[str] = []
    waiting: list[str] = []
    versions = 0
    async for kept in context.blobs.survey():
        age = now - kept.changed_at
        if kept.kind == "draft" and age > UPLOAD_SECONDS:
            drafts.append(kept.name)
        elif kept.kind == "version" and age > GRACE_SECONDS:
            waiting.append(kept.name)
        if len(waiting) >= _AT_ONCE:
            versions += await _drop_orphans(context, waiting)
            waiting = []
    versions += await _drop_orphans(context, waiting)
    await context.blobs.delete_drafts(drafts)
    return Swept(versions=versions, drafts=len(drafts), uploads=uploads)


async def _end_uploads(context: StorageContext) -> int:
    """Forget uploads in parts that nobody finished; the bytes of their parts are orphans from then on."""
    async with context.pool.lend() as conn:
        results = await conn.pipeline([_scope(), records.end_old_uploads(UPLOAD_SECONDS)])
    return len(results[1].rows)


async def _drop_orphans(context: StorageContext, names: list[str]) -> int:
    if not names:
        return 0
    async with context.pool.lend() as conn:
        results = await conn.pipeline([_scope(), records.find_orphans(names)])
    orphans = [row[0].decode() for row in results[1].rows if row[0] is not None]
    await context.blobs.delete(orphans)
    return len(orphans)


def _scope() -> records.Statement:
    return records.scope(SERVICE, b"{}", "", "", "storage.sweep")
