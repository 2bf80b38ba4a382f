"""Builds the daemon and introduces its parts to each other: the place to read what is connected to what."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from toft import __version__
from toft.backends.context import Context, Knobs, Tasks
from toft.backends.engines import Engines
from toft.backends.estate import Estate
from toft.backends.jobs import Jobs
from toft.backends.numbers import Ports
from toft.backends.places import Places
from toft.backends.projects import Projects
from toft.backends.snapshots import Snapshots
from toft.backends.templates import Templates
from toft.backends.trash import Trash
from toft.daemon.children import Workers
from toft.daemon.life import Bounds, Daemon
from toft.engine.template import Launch
from toft.ids import BackendId
from toft.leases.book import LeaseBook
from toft.leases.pool import Pool
from toft.store.connection import Store
from toft.store.ledger import Ledger
from toft.telemetry.log import Telemetry
from toft.world import Clock, Entropy


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the daemon is told by its main: settings, and how its children are started."""

    places: Places
    knobs: Knobs
    bounds: Bounds
    bindir: Path | None
    workers: int
    job_argv: tuple[str, ...]
    worker_argv: tuple[str, ...]
    child_env: dict[str, str]


def compose(plan: Plan, clock: Clock, entropy: Entropy, tell: Telemetry, pid: int) -> Daemon:
    """All parts, put together. Needs a running event loop."""
    places = plan.places
    wake = asyncio.Event()
    tasks = Tasks(tell)
    store = Store(places.state)
    jobs = Jobs(plan.job_argv, plan.child_env, places.log, tell)
    engines = Engines(places.home, plan.bindir, jobs, clock, tell)
    projects = Projects(places.projects, jobs, engines)
    pool = Pool[BackendId](lambda _: wake.set())
    trash = Trash(places.trash, jobs, clock, entropy, tell, lambda: any(map(pool.waiting, pool.kinds())))
    launch = Launch(run_dir=places.run, uid=plan.knobs.uid_base, confinement=plan.knobs.confinement)
    workers = Workers(
        argv=plan.worker_argv,
        env=plan.child_env,
        version=__version__,
        most=plan.workers,
        uid=plan.knobs.worker_uid,
        places=places,
        store=store,
        tasks=tasks,
        tell=tell,
    )
    context = Context(
        places=places,
        knobs=plan.knobs,
        store=store,
        ledger=Ledger(store, clock),
        leases=LeaseBook(store, clock, wake.set),
        estate=Estate(store, clock, wake.set),
        pool=pool,
        jobs=jobs,
        engines=engines,
        projects=projects,
        templates=Templates(places.templates, launch, store, jobs, engines, projects, trash, clock, tell),
        snapshots=Snapshots(places, store, jobs, trash, clock, entropy),
        trash=trash,
        gateway=workers,
        ports=Ports(entropy),
        tasks=tasks,
        clock=clock,
        entropy=entropy,
        tell=tell,
    )
    return Daemon(context, workers, wake, plan.bounds, pid)
