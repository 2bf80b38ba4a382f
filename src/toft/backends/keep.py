"""What happens to a lease after it was taken: renewed, held again, released, over."""

from __future__ import annotations

import hmac

import msgspec

from toft.backends.backend import Backend, Wish
from toft.backends.context import Context
from toft.backends.take import digest_credential
from toft.errors.access import CredentialRefused
from toft.errors.lease import LeaseEnded
from toft.leases import lifecycle
from toft.leases.lease import Lease
from toft.protocol.lease import RenewLease
from toft.telemetry.events import LeaseEnded as Ended
from toft.telemetry.events import LeaseHeld


def prove(lease: Lease, credential: str) -> None:
    """Raises `CredentialRefused` unless this is the credential of the lease."""
    if not hmac.compare_digest(digest_credential(credential), lease.credential_digest):
        raise CredentialRefused(subject=f"lease `{lease.id}`")


def renew(context: Context, lease_id: str, renewal: RenewLease) -> Lease:
    """Give a lease a new time to live."""
    lease = context.leases.get(lease_id)
    if renewal.credential is not None:
        prove(lease, renewal.credential)
    renewed = lifecycle.renew(lease, renewal.ttl_seconds, context.clock.mono(), hold=renewal.hold)
    with context.store.transaction() as tx:
        context.leases.update(tx, renewed)
        context.ledger.append(
            tx, "lease.renewed", lease.id, ttl_seconds=renewed.ttl_seconds, held=renewed.is_held
        )
    return renewed


def hold(context: Context, lease_id: str, credential: str) -> Lease:
    """A holder wants to keep a lease by a stream, as after a restart of the daemon."""
    lease = context.leases.get(lease_id)
    prove(lease, credential)
    if not lease.is_held:
        lease = msgspec.structs.replace(lease, is_held=True)
    with context.store.transaction() as tx:
        context.leases.update(tx, lease)
        context.ledger.append(tx, "lease.held", lease.id)
    context.tell(LeaseHeld(lease=lease.id))
    return lease


def end(context: Context, lease: Lease, reason: str) -> None:
    """A lease is over: its backend is wished gone in the same transaction, and the loop does the rest."""
    backend = context.estate.get(lease.backend_id)
    with context.store.transaction() as tx:
        context.leases.end(tx, lease, reason)
        context.snapshots.drop_all_of(tx, lease.id)
        if backend is not None:
            context.estate.change(backend.id, tx, wish=Wish.GONE)
        context.ledger.append(tx, "lease.ended", lease.id, backend=lease.backend_id, reason=reason)
    context.tell(Ended(lease=lease.id, backend=lease.backend_id, reason=reason))


def end_due(context: Context) -> None:
    """End the leases that are over by now."""
    for lease, reason in context.leases.due():
        end(context, lease, reason)


def backend_of(context: Context, lease: Lease) -> Backend:
    """The backend of a live lease."""
    backend = context.estate.get(lease.backend_id)
    if backend is None:
        raise LeaseEnded(lease=lease.id, reason="its backend is no more")
    return backend
