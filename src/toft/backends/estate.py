"""All backends that have a record: the record, and what was last seen of each.

Records are written through to the store; sightings live in memory and are made anew by each daemon. Whoever
changes something calls `touch`, and the loop looks at what was touched, no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import msgspec

from toft.backends import records
from toft.backends.backend import Attachment, Backend, Sighting, Wish
from toft.backends.decide import DEATHS_COUNT_SECONDS
from toft.ids import BackendId
from toft.store.connection import Store
from toft.store.transaction import Transaction
from toft.world import Clock


class Estate:
    """Backends by id. `wake` is called when something was touched."""

    def __init__(self, store: Store, clock: Clock, wake: Callable[[], None]) -> None:
        self._store = store
        self._clock = clock
        self._wake = wake
        self._backends: dict[BackendId, Backend] = {}
        self._seen: dict[BackendId, Sighting] = {}
        self._deaths: dict[BackendId, list[float]] = {}
        self._touched: set[BackendId] = set()
        self._ports: set[int] = set()
        self._uids: set[int] = set()
        self._dropped = asyncio.Event()

    def load(self) -> list[Backend]:
        """Read all records, as an earlier daemon left them."""
        for backend in records.load_all(self._store):
            self._remember(backend)
        return list(self._backends.values())

    def add(self, tx: Transaction, backend: Backend) -> None:
        """A new backend is wished for."""
        records.insert(tx, backend)
        tx.then(lambda: self._remember(backend))

    def change(self, backend_id: BackendId, tx: Transaction | None = None, **fields: Any) -> Backend:
        """Change fields of a record, in the store first, within `tx` or alone."""
        backend = msgspec.structs.replace(self._backends[backend_id], **fields)
        with self._store.transaction() if tx is None else nullcontext(tx) as within:
            records.update(within, backend)
            within.then(lambda: self._remember(backend))
        return backend

    def drop(self, tx: Transaction, backend_id: BackendId) -> None:
        """Nothing is left of it."""
        records.delete(tx, backend_id)
        backend = self._backends[backend_id]
        tx.then(lambda: self._forget(backend))

    def see(
        self,
        backend_id: BackendId,
        *,
        is_running: bool | None = None,
        attachment: Attachment | None = None,
    ) -> None:
        """Note what was seen; a backend that is gone meanwhile is no matter."""
        seen = self._seen.get(backend_id)
        if seen is None:
            return
        self._seen[backend_id] = Sighting(
            is_running=seen.is_running if is_running is None else is_running,
            attachment=seen.attachment if attachment is None else attachment,
        )
        self.touch(backend_id)

    def count_death(self, backend_id: BackendId) -> int:
        """Its postmaster ended by itself: how often that happened lately."""
        now = self._clock.mono()
        recent = [at for at in self._deaths.get(backend_id, []) if now - at < DEATHS_COUNT_SECONDS]
        self._deaths[backend_id] = [*recent, now]
        self.touch(backend_id)
        return len(recent) + 1

    def forget_deaths(self, backend_id: BackendId) -> None:
        """Its postmaster gets another chance."""
        self._deaths.pop(backend_id, None)

    def get(self, backend_id: BackendId) -> Backend | None:
        """The record, or None when it is gone."""
        return self._backends.get(backend_id)

    def seen(self, backend_id: BackendId) -> Sighting:
        """What was last seen of it."""
        now = self._clock.mono()
        deaths = sum(now - at < DEATHS_COUNT_SECONDS for at in self._deaths.get(backend_id, ()))
        return msgspec.structs.replace(self._seen[backend_id], recent_deaths=deaths)

    def all(self) -> Iterable[Backend]:
        """Every record."""
        return self._backends.values()

    def count(self) -> int:
        """How many there are that are not going."""
        return sum(backend.wish is not Wish.GONE for backend in self._backends.values())

    async def wait_none_going(self) -> None:
        """Return when nothing is left of those that were wished gone."""
        while any(backend.wish is Wish.GONE for backend in self._backends.values()):
            self._dropped.clear()
            await self._dropped.wait()

    async def wait_all_leased(self) -> None:
        """Return when nothing is left but what serves a lease."""
        while any(backend.wish is Wish.GONE or not backend.is_leased for backend in self._backends.values()):
            self._dropped.clear()
            await self._dropped.wait()

    def is_port_taken(self, port: int) -> bool:
        """Whether the port is a backend's."""
        return port in self._ports

    @property
    def uids(self) -> set[int]:
        """User ids in use."""
        return self._uids

    def touch(self, backend_id: BackendId) -> None:
        """Have the loop look at this one."""
        self._touched.add(backend_id)
        self._wake()

    def next_touched(self) -> BackendId | None:
        """One that was touched and that nobody has looked at since; None when there is none."""
        return self._touched.pop() if self._touched else None

    def _remember(self, backend: Backend) -> None:
        before = self._backends.get(backend.id)
        if before is not None:
            self._ports -= {before.http_port, before.db_port}
        self._backends[backend.id] = backend
        self._seen.setdefault(backend.id, Sighting())
        self._ports |= {backend.http_port, backend.db_port}
        if backend.uid is not None:
            self._uids.add(backend.uid)
        self.touch(backend.id)

    def _forget(self, backend: Backend) -> None:
        del self._backends[backend.id]
        self._seen.pop(backend.id, None)
        self._deaths.pop(backend.id, None)
        self._touched.discard(backend.id)
        self._dropped.set()
        self._ports -= {backend.http_port, backend.db_port}
        if backend.uid is not None:
            self._uids.discard(backend.uid)
