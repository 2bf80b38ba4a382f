"""The life of toftd: listen, take over what an earlier one left, run, let go."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress

import msgspec

from toft import __version__
from toft.backends import observe
from toft.backends.act import Actor
from toft.backends.backend import Backend, Wish
from toft.backends.context import Context
from toft.backends.fault import explain
from toft.backends.patrol import Patrol, wake
from toft.backends.projects import MOST_BUNDLES
from toft.backends.records import TemplateRecord
from toft.backends.supply import Supply
from toft.daemon.api import Api
from toft.daemon.children import Workers
from toft.daemon.loop import Loop
from toft.daemon.pressure import PressureWatch, is_short
from toft.errors.daemon import DaemonStopping
from toft.errors.shape import ToftError
from toft.host.files import remove_tree
from toft.http.server import Listener, listen
from toft.ids import BackendId, TemplateKey
from toft.leases import lifecycle
from toft.leases.refill import Limits
from toft.protocol.routes import Collected, Stopped
from toft.telemetry.events import Adopted, DaemonStarted, DaemonStopped, MemoryPressure
from toft.telemetry.metrics import Metrics

#: Nothing takes longer to go than this; what does is left to the next daemon.
STOP_SECONDS = 30.0
#: A daemon that cannot take over tells why, for so long, to who is connected or just connecting.
FAULT_SECONDS = 1.0


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much the daemon keeps, and which boot of the machine its state is to belong to."""

    pool: Limits
    templates_kept: int
    templates_bytes: int
    boot_id: str


class Daemon:
    """Everything that lives in toftd, from its first breath to its last. `pid` is its own."""

    def __init__(
        self, context: Context, workers: Workers, wake: asyncio.Event, bounds: Bounds, pid: int
    ) -> None:
        self._context = context
        self._workers = workers
        self._wake = wake
        self._bounds = bounds
        self._pid = pid
        self._tasks = context.tasks
        counters = Metrics()
        context.tell.add(counters)
        self._actor = Actor(context)
        self._supply = Supply(context, self._actor, bounds.pool)
        self._supply.is_short = is_short
        self._patrol = Patrol(context)
        self._pressure = PressureWatch(self._is_pressed)
        self._api = Api(context, self._supply, counters, collect=self.collect, stop=self.stop)
        self._stopped = asyncio.Event()
        self.leases_left = 0
        self.was_purged = False
        workers.see = lambda backend_id, attachment: context.estate.see(backend_id, attachment=attachment)
        workers.wake = self._wake_backend
        context.templates.made = self._keep_bounds
        context.jobs.lost = self._job_lost
        context.leases.began = self._patrol.notice

    async def serve(self, *, end_leases: bool = False) -> None:
        """Listen, take over what an earlier daemon left, and run until `stop`.

        end_leases: nobody came for the leases of a daemon that was stopped: end them, and stop too.
        """
        context = self._context
        places = context.places
        listener = await listen(self._api.handle, path=places.control_socket)
        try:
            for signum in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(signum, self._on_signal)
            context.tell(DaemonStarted(version=__version__, pid=self._pid, home=str(places.home)))
            try:
                await self._take_over()
            except (ToftError, OSError) as error:
                self._api.fault = explain(error, places.home, "taking over")
                self._api.ready.set()
                await asyncio.sleep(FAULT_SECONDS)
                raise self._api.fault from error
            self._api.ready.set()
            if end_leases:
                observe.end_all(context, lifecycle.STOPPED)
                await self.stop(False)
            await self._stopped.wait()
        finally:
            await self._close(listener)

    async def _take_over(self) -> None:
        context = self._context
        context.jobs.warm("clone")
        attached = await self._workers.adopt()
        found = observe.adopt(context, self._bounds.boot_id, attached)
        context.tell(
            Adopted(
                backends=found.backends,
                leases=found.leases,
                workers=self._workers.count(),
                cleaned=found.cleaned,
            )
        )
        loop = Loop(context, self._actor, self._supply, self._wake)
        self._tasks.keep(loop.run, "loop")
        self._tasks.keep(context.trash.sweep_forever, "trash")
        self._tasks.keep(self._patrol.walk_forever, "patrol")
        self._tasks.start(self._find_engines(), "engines")
        self._pressure.open()
        if found.leases:
            self._patrol.notice()
        if not self._workers.count():
            self._workers.start_first()

    async def stop(self, purge: bool) -> Stopped:
        """Let go of everything that no lease needs; with `purge` of everything. The daemon ends after it."""
        context = self._context
        self._api.is_stopping = True
        self._supply.is_closed = True
        context.is_closing = True
        if purge or not context.places.state.exists():  # in a home that was removed nobody finds them again
            observe.end_all(context, lifecycle.PURGED)
        for kind in context.pool.kinds():
            context.pool.fail(kind, DaemonStopping(), everyone=True)
        self._discard_pool()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await context.estate.wait_all_leased()
        self.leases_left = len(context.leases.live())
        context.leases.close_streams()
        await context.templates.close()
        await context.engines.close()
        with suppress(ToftError):
            await context.trash.sweep()
        await context.jobs.close()
        await self._workers.close(keep_busy=self.leases_left > 0)
        await self._tasks.close()
        self.was_purged = purge
        if purge:
            context.store.close()
            await asyncio.to_thread(self._remove_files)
        context.tell(DaemonStopped(leases_left=self.leases_left, purged=purge))
        self._stopped.set()
        return Stopped(stopped=True, leases=self.leases_left)

    async def collect(self, everything: bool) -> Collected:
        """Throw away what nothing uses: beyond the bounds, or all that no lease needs."""
        context = self._context
        self._supply.keeps_nothing = everything
        try:
            dropped = self._discard_pool() if everything else 0
            if everything:
                await context.estate.wait_none_going()
            gone = self._collect_templates(most=0 if everything else self._bounds.templates_kept)
        finally:
            self._supply.keeps_nothing = False
            self._wake.set()
        projects = context.projects.forget_old(
            0 if everything else MOST_BUNDLES, context.templates.projects_at_work()
        )
        observe.clear_half_made(context)
        if everything:
            for path in context.engines.unused({backend.engine_id for backend in context.estate.all()}):
                context.trash.throw(path)
        freed = sum(record.size_bytes for record in gone)
        await context.trash.sweep()
        return Collected(backends=dropped, templates=len(gone), projects=projects, bytes=freed)

    def _keep_bounds(self) -> None:
        self._collect_templates()

    def _job_lost(self, lane: str) -> None:
        if lane == "build":
            observe.clear_half_made(self._context)

    def _collect_templates(self, most: int | None = None) -> list[TemplateRecord]:
        context = self._context
        in_use = {backend.template_key for backend in context.estate.all()}
        in_use |= {TemplateKey(kind) for kind in context.pool.kinds()}
        return context.templates.collect(
            self._bounds.templates_kept if most is None else most, self._bounds.templates_bytes, in_use
        )

    def _discard_pool(self) -> int:
        """Wish everything gone that nobody has taken."""
        context = self._context
        idle = [
            backend
            for backend in context.estate.all()
            if not backend.is_leased and backend.wish is not Wish.GONE and not self._is_in_hands(backend)
        ]
        for backend in idle:
            context.estate.change(backend.id, wish=Wish.GONE)
        return len(idle)

    def _is_in_hands(self, backend: Backend) -> bool:
        """Whether it is just being handed over. One that stands on the shelf is taken away from there."""
        return self._actor.was_offered(backend.id) and not self._context.pool.withdraw(
            backend.template_key, backend.id
        )

    def _wake_backend(self, backend_id: BackendId) -> None:
        wake(self._context, backend_id)
        self._patrol.notice()

    def _is_pressed(self, is_pressed: bool) -> None:
        self._supply.is_pressed = is_pressed
        self._context.tell(MemoryPressure(is_pressed=is_pressed))
        self._wake.set()

    async def _find_engines(self) -> None:
        """Ahead of the first who asks; a fault is told to that one."""
        with suppress(ToftError):
            await self._context.engines.all()

    def _on_signal(self) -> None:
        if not self._api.is_stopping:
            self._stopping = asyncio.ensure_future(self.stop(False))

    def _remove_files(self) -> None:
        """All that this home holds, but for what is not ours: a config.toml that the user wrote."""
        places = self._context.places
        for path in (
            *places.contents,
            places.workers,
            *observe.builders_sockets(places),
            places.sockets,
        ):
            remove_tree(path)

    async def _close(self, listener: Listener) -> None:
        self._pressure.close()
        await self._tasks.close()
        await listener.close(grace_seconds=2.0)
        self._context.store.close()
