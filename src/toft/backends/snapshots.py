"""Snapshots of this home: a checkpoint belongs to a lease and has a name; a fork's goes when it was copied.

Each is a folder with a data directory that has not been started since, and its objects.
"""

from __future__ import annotations

from pathlib import Path

from toft.backends import records
from toft.backends.backend import Backend
from toft.backends.chores import Snap
from toft.backends.jobs import Jobs
from toft.backends.places import Places
from toft.backends.records import Snapshot
from toft.backends.trash import Trash
from toft.engine.capture import Captured, Source
from toft.engine.postmaster import Running
from toft.errors.backend import BackendFailed
from toft.errors.checkpoint import CheckpointExists, CheckpointNotFound, TooManyCheckpoints
from toft.ids import LeaseId, make_id
from toft.store.connection import Store
from toft.store.transaction import Transaction
from toft.world import Clock, Entropy

MOST_OF_A_LEASE = 20


class Snapshots:
    """Snapshots by id, and those of a lease by name."""

    def __init__(
        self, places: Places, store: Store, jobs: Jobs, trash: Trash, clock: Clock, entropy: Entropy
    ) -> None:
        self._places = places
        self._store = store
        self._jobs = jobs
        self._trash = trash
        self._clock = clock
        self._entropy = entropy
        self._known: dict[str, Snapshot] = {}
        #: of what forks are made from: the administrator's password in it
        self._passwords: dict[str, str] = {}
        self._for_one: set[str] = set()

    def load(self, live: set[LeaseId]) -> None:
        """Read the records of live leases; the rest, and folders without a record, are thrown away."""
        known = records.load_snapshots(self._store)
        self._known = {snapshot.id: snapshot for snapshot in known if snapshot.lease_id in live}
        with self._store.transaction() as tx:
            for snapshot in known:
                if snapshot.id not in self._known:
                    records.delete_snapshot(tx, snapshot.id)
        for path in self._places.snapshots.iterdir():
            if path.name not in self._known:
                self._trash.throw(path)

    def folder(self, snapshot_id: str) -> Path:
        """Where a snapshot lies, or would."""
        return self._places.snapshots / snapshot_id

    def password(self, snapshot_id: str) -> str | None:
        """The administrator's password in it; None in a checkpoint, where it is the backend's own."""
        return self._passwords.get(snapshot_id)

    def is_for_one(self, snapshot_id: str) -> bool:
        """Whether only one fork is made from it, which may have it as it is."""
        return snapshot_id in self._for_one

    def of_lease(self, lease_id: str) -> list[Snapshot]:
        """The checkpoints of a lease, oldest first."""
        return sorted(
            (snapshot for snapshot in self._known.values() if snapshot.lease_id == lease_id),
            key=lambda snapshot: (snapshot.created_at, snapshot.id),
        )

    def find(self, lease_id: str, name: str) -> Snapshot:
        """A checkpoint by its name. Raises `CheckpointNotFound`."""
        for snapshot in self.of_lease(lease_id):
            if snapshot.name == name:
                return snapshot
        raise CheckpointNotFound(checkpoint=name, lease=lease_id)

    def check_new(self, lease_id: str, name: str) -> None:
        """Raises what speaks against a checkpoint of this name."""
        names = [snapshot.name for snapshot in self.of_lease(lease_id)]
        if name in names:
            raise CheckpointExists(checkpoint=name, lease=lease_id)
        if len(names) >= MOST_OF_A_LEASE:
            raise TooManyCheckpoints(lease=lease_id, most=MOST_OF_A_LEASE)

    def suggest_name(self, lease_id: str) -> str:
        """A name for a checkpoint that was given none: the next number."""
        names = {snapshot.name for snapshot in self.of_lease(lease_id)}
        number = 1
        while str(number) in names:
            number += 1
        return str(number)

    async def take(
        self, backend: Backend, lease_id: LeaseId, name: str, *, is_for_one: bool = False
    ) -> tuple[Snapshot, Captured]:
        """Copy a running backend; there is no record of it yet. Raises what the capture raised."""
        if backend.pid is None or backend.pid_ticks is None or backend.secrets is None:
            raise BackendFailed(cause="it does not run")
        snapshot_id = make_id("s", self._entropy.bytes(10))
        folder = self.folder(snapshot_id)
        chore = Snap(
            source=Source(
                data_dir=self._places.data(backend.id),
                socket_path=self._places.socket(backend.id),
                password=backend.secrets.passwords["supabase_admin"],
                head=Running(pid=backend.pid, started_at_ticks=backend.pid_ticks),
            ),
            objects=self._places.objects(backend.id),
            folder=folder,
        )
        try:
            captured = await self._jobs.run(chore, Captured)
        except BaseException:
            self._trash.throw(folder)
            raise
        if not name:
            self._passwords[snapshot_id] = chore.source.password
        if is_for_one:
            self._for_one.add(snapshot_id)
        snapshot = Snapshot(
            id=snapshot_id,
            lease_id=lease_id,
            name=name,
            created_at=self._clock.now().isoformat(timespec="milliseconds"),
            size_bytes=captured.copied.bytes,
            pause_ms=captured.pause_ms,
        )
        return snapshot, captured

    def keep(self, tx: Transaction, snapshot: Snapshot) -> None:
        """It is a checkpoint from now on."""
        records.insert_snapshot(tx, snapshot)
        tx.then(lambda: self._known.update({snapshot.id: snapshot}))

    def drop(self, tx: Transaction, snapshot: Snapshot) -> None:
        """It is a checkpoint no more."""
        records.delete_snapshot(tx, snapshot.id)
        tx.then(lambda: self._forget(snapshot))

    def drop_all_of(self, tx: Transaction, lease_id: LeaseId) -> None:
        """A lease is over, and so are its checkpoints."""
        for snapshot in self.of_lease(lease_id):
            self.drop(tx, snapshot)

    def _forget(self, snapshot: Snapshot) -> None:
        self._known.pop(snapshot.id, None)
        self.discard(snapshot)

    def discard(self, snapshot: Snapshot) -> None:
        """Throw its files away."""
        self._passwords.pop(snapshot.id, None)
        self._for_one.discard(snapshot.id)
        self._trash.throw(self.folder(snapshot.id))
