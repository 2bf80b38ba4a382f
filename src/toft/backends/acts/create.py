"""Acts that bring a backend up: clone, start, prime, attach."""

from __future__ import annotations

import asyncio

from toft.backends.backend import Attachment, Backend, Wish
from toft.backends.chores import CloneTemplate, CopySnapshot
from toft.backends.context import Context
from toft.backends.identity import with_project_keys
from toft.engine import postmaster
from toft.engine.bootstrap import SUPERUSER
from toft.engine.postmaster import PostmasterSpec, Running
from toft.errors.backend import BackendFailed, PortTaken
from toft.protocol.worker import BackendSpec, Secrets
from toft.telemetry.events import BackendWoken, PostmasterDied

#: A port may be another program's: so often others are chosen before giving up.
MOST_PORT_TRIES = 20


async def clone(context: Context, backend: Backend) -> None:
    """Copy the template, or a snapshot, in a job process, which makes its secrets too."""
    folder = context.places.backend(backend.id)
    chore = (
        CloneTemplate(
            templates=context.places.templates,
            key=backend.template_key,
            folder=folder,
            uid=backend.uid,
            objects_uid=context.knobs.worker_uid,
        )
        if backend.snapshot is None
        else CopySnapshot(
            context.snapshots.folder(backend.snapshot),
            folder,
            backend.uid,
            moves=context.snapshots.is_for_one(backend.snapshot),
        )
    )
    made = await context.jobs.run(chore, Secrets)
    secrets = with_project_keys(made, backend.settings.auth.keys, context.clock.unix())
    is_primed = backend.snapshot is None
    context.estate.change(backend.id, is_cloned=True, is_primed=is_primed, secrets=secrets)


async def start(context: Context, backend: Backend) -> None:
    """Start the postmaster, and watch for its end."""
    spec = PostmasterSpec(
        engine=await context.engines.get(backend.engine_id),
        data_dir=context.places.data(backend.id),
        socket_dir=context.places.socket_folder(backend.id),
        log_path=context.places.postmaster_log(backend.id),
        uid=backend.uid,
        confinement=context.knobs.confinement,
        socket_gid=context.knobs.worker_uid,
        max_connections=context.knobs.max_connections,
    )
    running = await postmaster.start(spec)
    context.estate.change(backend.id, pid=running.pid, pid_ticks=running.started_at_ticks)
    watch(context, backend, running)


async def prime(context: Context, backend: Backend) -> None:
    """Give what was made of a snapshot passwords of its own."""
    await postmaster.set_passwords(
        context.places.socket(backend.id),
        _opening_password(context, backend),
        secrets_of(backend).passwords,
    )
    context.estate.change(backend.id, is_primed=True)


async def attach(context: Context, backend: Backend) -> None:
    """Open its ports. Ports of a backend that nobody knows yet may still change."""
    is_awake = backend.wish is Wish.STARTED
    for attempt in range(MOST_PORT_TRIES):
        try:
            await context.gateway.attach(worker_spec(context, backend, is_awake=is_awake))
            break
        except PortTaken:
            if backend.is_leased or attempt == MOST_PORT_TRIES - 1:
                raise
            http_port, db_port = choose_ports(context)
            backend = context.estate.change(backend.id, http_port=http_port, db_port=db_port)
        except asyncio.CancelledError:
            context.estate.see(backend.id, attachment=Attachment.UNTOLD)  # it may be or not: detach will tell
            raise
    context.estate.see(backend.id, attachment=Attachment.AWAKE if is_awake else Attachment.ASLEEP)


async def tell_awake(context: Context, backend: Backend) -> None:
    """Let waiting connections go on."""
    await context.gateway.set_awake(backend.id, is_awake=True)
    context.estate.see(backend.id, attachment=Attachment.AWAKE)
    asked_at = context.woken.pop(backend.id, None)
    if asked_at is not None:
        context.tell(BackendWoken(backend=backend.id, took_ms=(context.clock.mono() - asked_at) * 1000))


def _opening_password(context: Context, backend: Backend) -> str:
    """The administrator's password in the snapshot that it was made from, which may be its own."""
    taken = context.snapshots.password(backend.snapshot) if backend.snapshot is not None else None
    return taken or secrets_of(backend).passwords[SUPERUSER]


def worker_spec(context: Context, backend: Backend, *, is_awake: bool) -> BackendSpec:
    """All that a worker needs to serve a backend."""
    return BackendSpec(
        backend_id=backend.id,
        template_key=backend.template_key,
        http_port=backend.http_port,
        db_port=backend.db_port,
        socket_path=str(context.places.socket(backend.id)),
        objects_path=str(context.places.objects(backend.id)),
        settings=backend.settings,
        secrets=secrets_of(backend),
        is_awake=is_awake,
        max_sql_connections=context.knobs.max_sql_connections,
        max_body_bytes=context.knobs.max_body_bytes,
        edition=backend.edition,
    )


def choose_ports(context: Context) -> tuple[int, int]:
    """Two ports that no backend has."""
    first = context.ports.choose(context.estate.is_port_taken)
    second = context.ports.choose(lambda port: port == first or context.estate.is_port_taken(port))
    return first, second


def watch(context: Context, backend: Backend, running: Running) -> None:
    """Note that the postmaster runs, and its end when it comes by itself."""
    context.estate.see(backend.id, is_running=True)
    unwatch(context, backend)

    async def wait() -> None:
        await postmaster.wait_gone(running)
        del context.watches[backend.id]
        deaths = context.estate.count_death(backend.id)
        context.estate.see(backend.id, is_running=False)
        now = context.estate.get(backend.id)
        if now is not None and now.is_leased:
            with context.store.transaction() as tx:
                context.ledger.append(tx, "postmaster.died", backend.id, deaths=deaths)
        context.tell(PostmasterDied(backend=backend.id, deaths=deaths))

    context.watches[backend.id] = context.tasks.start(wait(), f"watch {backend.id}")


def unwatch(context: Context, backend: Backend) -> None:
    """Its end is expected from now on."""
    task = context.watches.pop(backend.id, None)
    if task is not None:
        task.cancel()


def secrets_of(backend: Backend) -> Secrets:
    """The secrets of a backend that was cloned."""
    if backend.secrets is None:
        raise BackendFailed(cause="it was not cloned yet")
    return backend.secrets


def running_of(backend: Backend) -> Running | None:
    """The postmaster as it was last started."""
    if backend.pid is None or backend.pid_ticks is None:
        return None
    return Running(pid=backend.pid, started_at_ticks=backend.pid_ticks)
