"""Pure: the messages about forks, checkpoints and returns, on both sides of the control API."""

from __future__ import annotations

import msgspec

from toft.protocol.lease import DEFAULT_TTL_SECONDS, Lease

MOST_FORKS = 100


class ForkLease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask for `count` leases on copies of a lease's backend. label: their name; with a number, if several."""

    count: int = 1
    ttl_seconds: float = DEFAULT_TTL_SECONDS
    label: str = ""


class Forks(msgspec.Struct, frozen=True, kw_only=True):
    """The forks. pause_ms: how long the parent stood still. is_shared: large files share their blocks."""

    parent: str
    forks: list[Lease]
    bytes: int
    is_shared: bool
    pause_ms: float
    took_ms: float


class CreateCheckpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keep what a lease's backend is now. name: None for the next number."""

    name: str | None = None


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A point that a lease can return to. pause_ms: how long the backend stood still for it."""

    name: str
    created_at: str
    bytes: int
    pause_ms: float


class Checkpoints(msgspec.Struct, frozen=True):
    """The checkpoints of a lease, oldest first."""

    checkpoints: list[Checkpoint]


class Returned(msgspec.Struct, frozen=True):
    """A lease's backend is what it was at `to`."""

    lease: str
    to: str
    took_ms: float
