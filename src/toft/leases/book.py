"""The live leases: in memory for speed, in the store for the next daemon; and who is connected.

Whoever holds a lease by a stream is counted here. A held lease ends when its last stream closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from toft.errors.lease import LeaseEnded, LeaseNotFound
from toft.ids import LeaseId
from toft.leases import lifecycle, records
from toft.leases.lease import Lease
from toft.store.connection import Store
from toft.store.transaction import Transaction
from toft.world import Clock


class Stream:
    """One open stream of a holder: gets notices while the lease lives, and at last the reason of its end.

    `ended` is None when it is not the lease that ends but the daemon.
    """

    def __init__(self) -> None:
        self.notices: asyncio.Queue[str] = asyncio.Queue()
        self.ended: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()


class LeaseBook:
    """Live leases by id. `changed` is called when a deadline may have moved."""

    def __init__(self, store: Store, clock: Clock, changed: Callable[[], None]) -> None:
        self._store = store
        self._clock = clock
        self._changed = changed
        self._live: dict[LeaseId, Lease] = {}
        self._streams: dict[LeaseId, list[Stream]] = {}
        #: called when a lease begins
        self.began: Callable[[], None] = lambda: None

    def load(self) -> list[Lease]:
        """Read what an earlier daemon left."""
        for lease in records.load_live(self._store):
            self._live[lease.id] = lease
        return list(self._live.values())

    def add(self, tx: Transaction, lease: Lease) -> None:
        """A lease begins."""
        records.insert(tx, lease)
        tx.then(lambda: self._remember(lease))
        tx.then(self.began)

    def update(self, tx: Transaction, lease: Lease) -> None:
        """A lease goes on otherwise."""
        records.update(tx, lease)
        tx.then(lambda: self._remember(lease))

    def end(self, tx: Transaction, lease: Lease, reason: str) -> None:
        """A lease is over; its streams are told why."""
        records.end(tx, lease.id, self._clock.now().isoformat(timespec="milliseconds"), reason)
        tx.then(lambda: self._forget(lease.id, reason))

    def get(self, lease_id: str) -> Lease:
        """A live lease by its id. Raises `LeaseEnded` with the reason, or `LeaseNotFound`."""
        lease = self._live.get(LeaseId(lease_id))
        if lease is not None:
            return lease
        reason = records.load_end(self._store, lease_id)
        if reason is not None:
            raise LeaseEnded(lease=lease_id, reason=reason)
        raise LeaseNotFound(lease=lease_id)

    def live(self) -> list[Lease]:
        """All live leases, oldest first."""
        return list(self._live.values())

    def open_stream(self, lease_id: LeaseId) -> Stream:
        """A holder is connected."""
        stream = Stream()
        self._streams.setdefault(lease_id, []).append(stream)
        self._changed()
        return stream

    def close_stream(self, lease_id: LeaseId, stream: Stream) -> Lease | None:
        """A holder has gone: the lease that ends by that, or None."""
        streams = self._streams.get(lease_id, [])
        if stream in streams:
            streams.remove(stream)
        if streams:
            return None
        self._streams.pop(lease_id, None)
        self._changed()
        lease = self._live.get(lease_id)
        return lease if lease is not None and lease.is_held else None

    def is_connected(self, lease_id: LeaseId) -> bool:
        """Whether a holder has a stream open."""
        return lease_id in self._streams

    def notify(self, tx: Transaction, lease: Lease, text: str) -> bool:
        """Tell the holder something: on its streams, and in what `show` says. False: it was told before."""
        if text in lease.notices:
            return False
        self.update(tx, msgspec.structs.replace(lease, notices=(*lease.notices, text)))
        for stream in self._streams.get(lease.id, ()):
            stream.notices.put_nowait(text)
        return True

    def due(self) -> list[tuple[Lease, str]]:
        """Leases that are over by now, and why."""
        now = self._clock.mono()
        over: list[tuple[Lease, str]] = []
        for lease in self._live.values():
            reason = lifecycle.decide_end(lease, is_connected=self.is_connected(lease.id), now_mono=now)
            if reason is not None:
                over.append((lease, reason))
        return over

    def next_deadline(self) -> float | None:
        """When the next lease is over unless something happens."""
        ends = [
            lifecycle.deadline(lease, is_connected=self.is_connected(lease.id))
            for lease in self._live.values()
        ]
        return min((end for end in ends if end is not None), default=None)

    def close_streams(self) -> None:
        """The daemon stops: streams end without a reason, so that holders know to come back."""
        for streams in self._streams.values():
            for stream in streams:
                if not stream.ended.done():
                    stream.ended.set_result(None)

    def _remember(self, lease: Lease) -> None:
        self._live[lease.id] = lease
        self._changed()

    def _forget(self, lease_id: LeaseId, reason: str) -> None:
        self._live.pop(lease_id, None)
        for stream in self._streams.get(lease_id, ()):
            if not stream.ended.done():
                stream.ended.set_result(reason)
