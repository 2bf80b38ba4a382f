"""Taking a lease: choose a ready backend, one transaction, done. The hot path; all else happened before.

When no backend is ready the caller waits in the pool, whose refill makes one for it; when there is not even
a template, the caller waits for that first and hears of its progress.
"""

from __future__ import annotations

import hashlib

import msgspec

from toft.backends.backend import Backend, Wish
from toft.backends.chores import Built
from toft.backends.context import Context
from toft.backends.gateway import WorkerLost
from toft.backends.jobs import Report
from toft.backends.numbers import new_credential, new_lease_id
from toft.backends.recipe import Recipe, question_of
from toft.errors.backend import BackendFailed
from toft.errors.daemon import DaemonStopping
from toft.ids import BackendId
from toft.leases import lifecycle
from toft.leases.lease import Lease
from toft.protocol.lease import CreateLease, TemplateUse
from toft.telemetry.events import LeaseTaken


class Taken(msgspec.Struct, frozen=True):
    """A lease that has just begun, with what proves its holder: told once, never kept."""

    lease: Lease
    backend: Backend
    credential: str

    def __repr__(self) -> str:
        return f"Taken({self.lease.id!r})"


async def take(context: Context, create: CreateLease, report: Report) -> Taken:
    """A lease on a backend of its own. Cancelled in the middle, it leaves nothing taken."""
    begun = context.clock.mono()
    lifecycle.check_ttl(create.ttl_seconds)
    question = question_of(create)
    recipe = context.projects.known(question)
    if recipe is None:
        if not context.engines.is_known:
            report("looking for Postgres on this machine")
        recipe = await context.projects.recipe(question)
    built: Built | None = None
    backend_id = context.pool.take_now(recipe.key)
    was_pooled = backend_id is not None
    if backend_id is None:
        built = await context.templates.ensure(recipe, question, report)
        backend_id = await context.pool.take(recipe.key)
    try:
        await _move(context, backend_id, create)
        taken = hand_over(context, backend_id, create, recipe, built)
    except BaseException:
        _give_back(context, recipe, backend_id)
        raise
    waited = (context.clock.mono() - begun) * 1000
    context.tell(
        LeaseTaken(
            lease=taken.lease.id,
            backend=backend_id,
            template=recipe.key,
            was_pooled=was_pooled,
            waited_ms=waited,
        )
    )
    return taken


async def _move(context: Context, backend_id: BackendId, create: CreateLease) -> None:
    """To the ports that were asked for. Raises `PortTaken`, and the backend stays where it was."""
    backend = _well(context, backend_id)
    http_port = create.http_port or backend.http_port
    db_port = create.db_port or backend.db_port
    if (http_port, db_port) == (backend.http_port, backend.db_port):
        return
    try:
        await context.gateway.relisten(backend_id, http_port, db_port)
    except WorkerLost:
        raise BackendFailed(cause="the gateway worker that served it died; ask again") from None
    context.estate.change(backend_id, http_port=http_port, db_port=db_port)


def hand_over(
    context: Context, backend_id: BackendId, create: CreateLease, recipe: Recipe, built: Built | None
) -> Taken:
    """The lease on a ready backend begins."""
    _well(context, backend_id)
    credential = new_credential(context.entropy)
    lease = Lease(
        id=new_lease_id(context.entropy),
        backend_id=backend_id,
        label=create.label,
        project=create.project,
        credential_digest=digest_credential(credential),
        ttl_seconds=create.ttl_seconds,
        is_held=create.hold,
        created_at=context.clock.now().isoformat(timespec="milliseconds"),
        expires_mono=context.clock.mono() + create.ttl_seconds,
        template=TemplateUse(
            key=recipe.key, was_cached=built is None, applied=0 if built is None else built.applied
        ),
        notices=recipe.notices if built is None else (*recipe.notices, *built.notices),
    )
    with context.store.transaction() as tx:
        backend = context.estate.change(backend_id, tx, is_leased=True)
        context.leases.add(tx, lease)
        context.templates.use(tx, recipe.key)
        context.ledger.append(
            tx, "lease.taken", lease.id, backend=backend_id, template=recipe.key, label=create.label
        )
    return Taken(lease, backend, credential)


def _give_back(context: Context, recipe: Recipe, backend_id: BackendId) -> None:
    """Nobody knows this backend yet: the next one may have it, if it is well."""
    backend = context.estate.get(backend_id)
    if backend is None or backend.wish is not Wish.STARTED:
        return
    if context.is_closing:
        context.estate.change(backend_id, wish=Wish.GONE)
        return
    context.pool.offer(recipe.key, backend_id)
    context.estate.touch(backend_id)


def digest_credential(credential: str) -> str:
    """What is kept of a credential."""
    return hashlib.sha256(credential.encode()).hexdigest()


def _well(context: Context, backend_id: BackendId) -> Backend:
    """The backend that is about to be handed over, if it is still wished for."""
    backend = context.estate.get(backend_id)
    if context.is_closing:
        raise DaemonStopping()
    if backend is None or backend.wish is not Wish.STARTED:
        raise BackendFailed(cause="it went away while it was handed over")
    return backend
