"""Walks over the leased backends now and then: puts idle ones to sleep, looks at the disk of busy ones.

There are no rounds while nobody is awake.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from toft.backends import keep
from toft.backends.backend import Attachment, Backend, Wish
from toft.backends.chores import Measure
from toft.backends.context import Context
from toft.backends.gateway import WorkerLost
from toft.errors.shape import ToftError
from toft.ids import BackendId
from toft.leases.lease import Lease
from toft.protocol.worker import BackendUsage
from toft.telemetry.events import QuotaExceeded

#: At least so often, while somebody is awake.
ROUND_SECONDS = 30.0
#: Beyond so many times its quota a backend is ended.
FAR_BEYOND = 2


def decide_sleepers(usage: Mapping[str, BackendUsage], sleep_after_seconds: float) -> list[str]:
    """Backends that nobody has used for that long; none when it is 0."""
    if not sleep_after_seconds:
        return []
    return [
        backend_id
        for backend_id, used in usage.items()
        if used.idle_seconds >= sleep_after_seconds and not used.sql_connections and not used.http_in_flight
    ]


def decide_pause(usage: Mapping[str, BackendUsage], sleep_after_seconds: float) -> float:
    """How long until the next round: till the first may fall asleep, but no longer than a round."""
    waits = [sleep_after_seconds - used.idle_seconds for used in usage.values() if sleep_after_seconds]
    return max(0.05, min([ROUND_SECONDS, *(wait for wait in waits if wait > 0)]))


class Patrol:
    """The rounds. `notice` is called when a backend was leased or woken."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._somebody = asyncio.Event()

    def notice(self) -> None:
        """Somebody is awake."""
        self._somebody.set()

    async def walk_forever(self) -> None:
        """Rounds as long as somebody is awake; else wait."""
        pause = 0.0
        while True:
            await self._somebody.wait()
            after = self._context.knobs.sleep_after_seconds
            await asyncio.sleep(pause or min(ROUND_SECONDS, after or ROUND_SECONDS))
            usage = await self._round()
            pause = decide_pause(usage, after) if usage else 0.0
            if not any(self._is_awake(backend) for backend in self._context.estate.all()):
                self._somebody.clear()

    async def _round(self) -> dict[str, BackendUsage]:
        context = self._context
        try:
            usage = await context.gateway.usage()
        except WorkerLost:
            return {}
        leased = {
            backend_id: used
            for backend_id, used in usage.items()
            if (backend := context.estate.get(BackendId(backend_id))) is not None and self._is_awake(backend)
        }
        sleepers = decide_sleepers(leased, context.knobs.sleep_after_seconds)
        for backend_id in sleepers:
            context.estate.change(BackendId(backend_id), wish=Wish.ASLEEP)
        busy = [BackendId(name) for name, used in leased.items() if used.idle_seconds < ROUND_SECONDS]
        with suppress(ToftError):
            await self._measure(busy)
        return {name: used for name, used in leased.items() if name not in sleepers}

    async def _measure(self, backend_ids: list[BackendId]) -> None:
        context = self._context
        if not backend_ids:
            return
        paths = tuple(context.places.backend(backend_id) for backend_id in backend_ids)
        sizes = await context.jobs.run(Measure(paths), list[int])
        leases = {lease.backend_id: lease for lease in context.leases.live()}
        for backend_id, size in zip(backend_ids, sizes, strict=True):
            lease = leases.get(backend_id)
            if lease is not None and size > context.knobs.disk_quota_bytes:
                self._exceeded(lease, size)

    def _exceeded(self, lease: Lease, size: int) -> None:
        context = self._context
        quota = context.knobs.disk_quota_bytes
        context.tell(QuotaExceeded(backend=lease.backend_id, size_bytes=size, quota_bytes=quota))
        if size > quota * FAR_BEYOND:
            keep.end(context, lease, f"it used {size >> 20} MiB of disk; its quota is {quota >> 20} MiB")
            return
        text = (
            f"the backend uses more disk than its quota of {quota >> 20} MiB;"
            f" beyond {quota * FAR_BEYOND >> 20} MiB its lease ends"
        )
        with context.store.transaction() as tx:
            if context.leases.notify(tx, lease, text):
                context.ledger.append(tx, "quota.exceeded", lease.backend_id, size_bytes=size)

    def _is_awake(self, backend: Backend) -> bool:
        return backend.is_leased and backend.wish is Wish.STARTED and backend.failure is None


def wake(context: Context, backend_id: BackendId) -> None:
    """A connection waits for a backend: start a sleeper; tell about one that runs."""
    backend = context.estate.get(backend_id)
    if backend is None or backend.failure is not None:
        return
    if backend.wish is Wish.ASLEEP:
        context.woken.setdefault(backend_id, context.clock.mono())
        context.estate.change(backend_id, wish=Wish.STARTED)
    elif backend.wish is Wish.STARTED:
        context.estate.see(backend_id, attachment=Attachment.UNTOLD)
