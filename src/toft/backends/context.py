"""What the acts on backends work with: every part by name, put together once by the daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from toft.backends.engines import Engines
from toft.backends.estate import Estate
from toft.backends.gateway import Gateway
from toft.backends.jobs import Jobs
from toft.backends.numbers import Ports
from toft.backends.places import Places
from toft.backends.projects import Projects
from toft.backends.snapshots import Snapshots
from toft.backends.templates import Templates
from toft.backends.trash import Trash
from toft.backends.waiting import Expected
from toft.host.confine import Method
from toft.ids import BackendId
from toft.leases.book import LeaseBook
from toft.leases.pool import Pool
from toft.store.connection import Store
from toft.store.ledger import Ledger
from toft.telemetry.log import Telemetry
from toft.world import Clock, Entropy

#: What should go on for ever and failed begins again after so long.
REST_SECONDS = 1.0


class Tasks:
    """Tasks that nobody awaits: kept until they end, cancelled together, their faults reported."""

    def __init__(self, tell: Telemetry) -> None:
        self._tell = tell
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run it on its own."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def keep(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Run what never ends; after a fault it is reported and begun again."""
        self.start(self._again_and_again(work, name), name)

    async def _again_and_again(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        while True:
            try:
                await work()
            except Exception as error:  # one bad turn must not end the daemon
                self._tell.fault(name, error)
            await asyncio.sleep(REST_SECONDS)

    async def close(self) -> None:
        """Cancel all and wait for their end."""
        while self._running:
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._tell.fault(task.get_name(), error)


class Knobs(msgspec.Struct, frozen=True, kw_only=True):
    """What settings say about backends. uid_base: None when backends run as the daemon's own user."""

    confinement: Method
    uid_base: int | None
    #: room for those, for three services with four each, and for the superuser
    max_connections: int = 50
    max_sql_connections: int = 30
    max_body_bytes: int = 64 << 20
    disk_quota_bytes: int = 1 << 30
    sleep_after_seconds: float = 900.0
    max_backends: int = 1000

    @property
    def worker_uid(self) -> int | None:
        """The user that gateway workers are; None when they are the daemon's own."""
        return None if self.uid_base is None or self.confinement != "bubblewrap" else self.uid_base + 1


class Context(msgspec.Struct, kw_only=True):
    """All parts.

    watches: a task per running postmaster, which waits for its end. turns: who copies a backend or swaps what
    it has, does so alone. expected: who waits for a certain backend. woken: when a sleeper's first connection
    asked for it. is_closing: nothing is handed over any more.
    """

    places: Places
    knobs: Knobs
    store: Store
    ledger: Ledger
    leases: LeaseBook
    estate: Estate
    pool: Pool[BackendId]
    jobs: Jobs
    engines: Engines
    projects: Projects
    templates: Templates
    snapshots: Snapshots
    trash: Trash
    gateway: Gateway
    ports: Ports
    tasks: Tasks
    clock: Clock
    entropy: Entropy
    tell: Telemetry
    expected: Expected = msgspec.field(default_factory=Expected)
    turns: dict[BackendId, asyncio.Lock] = {}
    watches: dict[BackendId, asyncio.Task[None]] = {}
    woken: dict[BackendId, float] = {}
    is_closing: bool = False
