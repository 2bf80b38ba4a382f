"""Pure: when a lease ends. All times are seconds on the clock that never jumps.

A lease ends once, by the first of: its time to live ran out (never while a holder is connected), its holder's
stream closed, it was released, its backend is no more. A daemon that starts gives held leases a grace, in
which their holders come back.
"""

from __future__ import annotations

import msgspec

from toft.errors.lease import TtlOutOfRange
from toft.leases.lease import Lease

LEAST_TTL_SECONDS = 1.0
MOST_TTL_SECONDS = 30 * 24 * 3600.0

RELEASED = "it was released"
EXPIRED = "its time to live ran out"
HOLDER_GONE = "its holder went away"
HOLDER_NOT_BACK = "its holder did not come back after the daemon was restarted"
REBOOTED = "the machine was restarted"
PURGED = "everything was purged"
STOPPED = "the daemon was stopped"


def check_ttl(seconds: float) -> float:
    """The time to live if it is within bounds; raises `TtlOutOfRange` (also for NaN)."""
    if not LEAST_TTL_SECONDS <= seconds <= MOST_TTL_SECONDS:
        raise TtlOutOfRange(ttl=f"{seconds:g} s", least="1 s", most="30 days")
    return seconds


def deadline(lease: Lease, *, is_connected: bool) -> float | None:
    """When the lease ends if nothing else happens; None while its holder is connected."""
    return None if lease.is_held and is_connected else lease.expires_mono


def decide_end(lease: Lease, *, is_connected: bool, now_mono: float) -> str | None:
    """Why the lease is over by now, or None when it lives."""
    due = deadline(lease, is_connected=is_connected)
    if due is None or now_mono < due:
        return None
    return HOLDER_NOT_BACK if lease.is_held else EXPIRED


def renew(lease: Lease, ttl_seconds: float, now_mono: float, *, hold: bool | None = None) -> Lease:
    """The lease with a new time to live from now; `hold=False` lets go of it, so that only time ends it."""
    return msgspec.structs.replace(
        lease,
        ttl_seconds=check_ttl(ttl_seconds),
        expires_mono=now_mono + ttl_seconds,
        is_held=lease.is_held if hold is None else hold,
    )


def adopt(lease: Lease, now_mono: float, grace_seconds: float) -> Lease:
    """What a new daemon makes of a lease: a held one waits for its holder for the grace, others go on."""
    if not lease.is_held:
        return lease
    return msgspec.structs.replace(lease, expires_mono=now_mono + grace_seconds)
