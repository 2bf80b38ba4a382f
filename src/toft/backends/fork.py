"""Forks, checkpoints and returns: what is asked of a lease's whole backend, database and objects together.

A fork is a lease like any other whose backend was copied from a running one. A checkpoint is a copy that a
lease can return to, in place: the same URL, keys and passwords. A reset returns to the template.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from toft import __version__
from toft.backends import keep
from toft.backends.acts.create import choose_ports
from toft.backends.backend import TEMPLATE, Backend, Wish
from toft.backends.context import Context
from toft.backends.numbers import choose_uid, new_backend_id
from toft.backends.recipe import Recipe
from toft.backends.snapshots import Snapshot
from toft.backends.supply import OWN_UIDS
from toft.backends.take import Taken, hand_over
from toft.engine.capture import Captured
from toft.errors.backend import BackendFailed, TooManyBackends
from toft.errors.checkpoint import ForkRefused
from toft.errors.shape import ToftError
from toft.leases import lifecycle
from toft.leases.lease import Lease
from toft.protocol.fork import MOST_FORKS, ForkLease
from toft.protocol.lease import CreateLease
from toft.telemetry.events import BackendSwapped, SnapshotTaken

#: So often a copy is begun anew whose source ended or fell asleep in the middle.
MOST_TRIES = 3


class Forked(msgspec.Struct, frozen=True):
    """The forks of one moment, and what the copy of that moment took."""

    taken: tuple[Taken, ...]
    captured: Captured


async def fork(context: Context, lease_id: str, wish: ForkLease) -> Forked:
    """So many leases on copies of this lease's backend, all of one moment. All of them, or none."""
    lifecycle.check_ttl(wish.ttl_seconds)
    if not 1 <= wish.count <= MOST_FORKS:
        raise ForkRefused(count=wish.count, most=MOST_FORKS)
    leased = sum(backend.is_leased for backend in context.estate.all())
    if leased + wish.count > context.knobs.max_backends:
        raise TooManyBackends(count=leased)
    lease = context.leases.get(lease_id)
    async with _alone(context, lease) as backend:
        snapshot, captured = await _capture(context, backend, lease, "", is_for_one=wish.count == 1)
    try:
        made = await _all_or_none(context, lease, backend, snapshot, wish)
    finally:
        context.snapshots.discard(snapshot)
    with context.store.transaction() as tx:
        for taken in made:
            context.ledger.append(tx, "lease.forked", taken.lease.id, parent=lease.id)
    return Forked(made, captured)


async def checkpoint(context: Context, lease_id: str, name: str | None) -> Snapshot:
    """Keep what a lease's backend is now, under a name."""
    lease = context.leases.get(lease_id)
    async with _alone(context, lease) as backend:
        name = name or context.snapshots.suggest_name(lease.id)
        context.snapshots.check_new(lease.id, name)
        snapshot, _ = await _capture(context, backend, lease, name)
        try:
            context.leases.get(lease.id)  # it may have ended meanwhile
            with context.store.transaction() as tx:
                context.snapshots.keep(tx, snapshot)
                context.ledger.append(tx, "checkpoint.created", lease.id, name=name)
        except ToftError:
            context.snapshots.discard(snapshot)
            raise
    return snapshot


async def restore(context: Context, lease_id: str, name: str) -> float:
    """Return to a checkpoint. How long that took, in milliseconds."""
    lease = context.leases.get(lease_id)
    snapshot = context.snapshots.find(lease.id, name)
    return await _swap(context, lease, snapshot.id, f"checkpoint {name}")


async def reset(context: Context, lease_id: str) -> float:
    """Return to just after migrations and seeds. How long that took, in milliseconds."""
    return await _swap(context, context.leases.get(lease_id), TEMPLATE, "template")


def forget(context: Context, lease_id: str, name: str) -> None:
    """A checkpoint is not needed any more. A backend that was made from it stays as it is."""
    lease = context.leases.get(lease_id)
    snapshot = context.snapshots.find(lease.id, name)
    with context.store.transaction() as tx:
        context.snapshots.drop(tx, snapshot)
        context.ledger.append(tx, "checkpoint.deleted", lease.id, name=name)


@asynccontextmanager
async def _alone(context: Context, lease: Lease) -> AsyncGenerator[Backend]:
    """Nobody else copies or swaps this backend meanwhile."""
    backend = keep.backend_of(context, lease)
    async with context.turns.setdefault(backend.id, asyncio.Lock()):
        context.leases.get(lease.id)
        yield keep.backend_of(context, lease)


async def _capture(
    context: Context, backend: Backend, lease: Lease, name: str, *, is_for_one: bool = False
) -> tuple[Snapshot, Captured]:
    for attempt in range(MOST_TRIES):
        backend = await _awake(context, backend)
        try:
            snapshot, captured = await context.snapshots.take(backend, lease.id, name, is_for_one=is_for_one)
        except BackendFailed:
            context.leases.get(lease.id)
            if attempt == MOST_TRIES - 1:
                raise
            continue
        context.tell(
            SnapshotTaken(
                backend=backend.id,
                size_bytes=captured.copied.bytes,
                pause_ms=captured.pause_ms,
                took_ms=captured.took_ms,
            )
        )
        return snapshot, captured
    raise AssertionError


async def _awake(context: Context, backend: Backend) -> Backend:
    """The backend when its server runs. Raises `BackendFailed` when it is broken."""
    waiter = context.expected.expect(backend.id)
    if backend.wish is Wish.ASLEEP:
        context.estate.change(backend.id, wish=Wish.STARTED)
    context.estate.touch(backend.id)
    await waiter
    now = context.estate.get(backend.id)
    if now is None or now.wish is Wish.GONE:
        raise BackendFailed(cause="its lease has ended")
    return now


async def _all_or_none(
    context: Context, lease: Lease, parent: Backend, snapshot: Snapshot, wish: ForkLease
) -> tuple[Taken, ...]:
    outcomes = await asyncio.gather(
        *(_make(context, lease, parent, snapshot, wish, number) for number in range(1, wish.count + 1)),
        return_exceptions=True,
    )
    made = tuple(outcome for outcome in outcomes if isinstance(outcome, Taken))
    failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    if failed:
        for taken in made:
            keep.end(context, taken.lease, "another fork of its kind could not be made")
        raise failed[0]
    return made


async def _make(
    context: Context, lease: Lease, parent: Backend, snapshot: Snapshot, wish: ForkLease, number: int
) -> Taken:
    base = context.knobs.uid_base
    http_port, db_port = choose_ports(context)
    backend = Backend(
        id=new_backend_id(context.entropy),
        template_key=parent.template_key,
        engine_id=parent.engine_id,
        wish=Wish.STARTED,
        http_port=http_port,
        db_port=db_port,
        uid=None if base is None else choose_uid(base + OWN_UIDS, context.estate.uids),
        settings=parent.settings,
        snapshot=snapshot.id,
        created_at=context.clock.now().isoformat(timespec="milliseconds"),
        created_mono=context.clock.mono(),
    )
    waiter = context.expected.expect(backend.id)
    try:
        with context.store.transaction() as tx:
            context.estate.add(tx, backend)
        await waiter
        recipe = Recipe(key=parent.template_key, base_key=parent.template_key, engine_id=parent.engine_id)
        create = CreateLease(
            version=__version__,
            project=lease.project,
            ttl_seconds=wish.ttl_seconds,
            label=_label(wish, number),
        )
        return hand_over(context, backend.id, create, recipe, None)
    except BaseException:
        if context.estate.get(backend.id) is not None:
            context.estate.change(backend.id, wish=Wish.GONE)
        raise


def _label(wish: ForkLease, number: int) -> str:
    return f"{wish.label}-{number}" if wish.label and wish.count > 1 else wish.label


async def _swap(context: Context, lease: Lease, wanted: str, what: str) -> float:
    async with _alone(context, lease) as backend:
        begun = context.clock.mono()
        waiter = context.expected.expect(backend.id)
        with context.store.transaction() as tx:
            context.estate.change(backend.id, tx, swap=wanted, failure=None, wish=Wish.STARTED)
            context.ledger.append(tx, "backend.swapped", lease.id, to=what)
        context.estate.forget_deaths(backend.id)
        await waiter
        took = (context.clock.mono() - begun) * 1000
        context.tell(BackendSwapped(backend=backend.id, to=what, took_ms=took))
        return took
