"""Pure: the closed list of facts that are worth reporting.

Rooms report facts; `log.py` and `metrics.py` decide what becomes of them. No field ever holds a secret.
"""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct, frozen=True):
    """A fact. `level` says how loud it is, `name` is its stable name in logs and metrics."""

    level = "info"
    name = "event"


class DaemonStarted(Event, frozen=True):
    name = "daemon.started"
    version: str
    pid: int
    home: str


class DaemonStopped(Event, frozen=True):
    name = "daemon.stopped"
    leases_left: int
    purged: bool


class Adopted(Event, frozen=True):
    """What an earlier daemon left and this one took over."""

    name = "daemon.adopted"
    backends: int
    leases: int
    workers: int
    cleaned: int


class EnginesFound(Event, frozen=True):
    name = "engines.found"
    engines: str
    took_ms: float


class TemplateBuilt(Event, frozen=True):
    name = "template.built"
    key: str
    kind: str
    applied: int
    took_ms: float


class TemplateFailed(Event, frozen=True):
    name = "template.failed"
    level = "warning"
    key: str
    code: str
    cause: str


class TemplateCollected(Event, frozen=True):
    name = "template.collected"
    key: str
    size_bytes: int


class SnapshotTaken(Event, frozen=True):
    """A running backend was copied. pause_ms: how long it stood still."""

    name = "snapshot.taken"
    backend: str
    size_bytes: int
    pause_ms: float
    took_ms: float


class BackendSwapped(Event, frozen=True):
    """Another copy took the place of what a backend had."""

    name = "backend.swapped"
    backend: str
    to: str
    took_ms: float


class LeaseTaken(Event, frozen=True):
    """waited_ms: from the request to the lease. was_pooled: a started backend was at hand."""

    name = "lease.taken"
    lease: str
    backend: str
    template: str
    was_pooled: bool
    waited_ms: float


class LeaseRefused(Event, frozen=True):
    name = "lease.refused"
    code: str
    cause: str


class LeaseEnded(Event, frozen=True):
    name = "lease.ended"
    lease: str
    backend: str
    reason: str


class LeaseHeld(Event, frozen=True):
    """A holder came back after the daemon was restarted."""

    name = "lease.held"
    lease: str


class BackendReady(Event, frozen=True):
    """Started and attached, for a pool or for its lease. took_ms: since its record was made."""

    name = "backend.ready"
    backend: str
    template: str
    took_ms: float


class BackendSlept(Event, frozen=True):
    name = "backend.slept"
    backend: str


class BackendWoken(Event, frozen=True):
    name = "backend.woken"
    backend: str
    took_ms: float


class BackendGone(Event, frozen=True):
    """Nothing of it is left but files in the trash. took_ms: since it was wished gone."""

    name = "backend.gone"
    backend: str
    took_ms: float


class BackendBroken(Event, frozen=True):
    """It failed for good; its lease stays to tell why."""

    name = "backend.broken"
    level = "error"
    backend: str
    cause: str


class ActFailed(Event, frozen=True):
    name = "act.failed"
    level = "warning"
    backend: str
    act: str
    cause: str


class PostmasterDied(Event, frozen=True):
    name = "postmaster.died"
    level = "warning"
    backend: str
    deaths: int


class WorkerStarted(Event, frozen=True):
    name = "worker.started"
    worker: int
    pid: int
    adopted: bool


class WorkerDied(Event, frozen=True):
    name = "worker.died"
    level = "warning"
    worker: int
    backends: int


class JobDied(Event, frozen=True):
    name = "job.died"
    level = "warning"
    lane: str
    jobs: int


class QuotaExceeded(Event, frozen=True):
    name = "quota.exceeded"
    level = "warning"
    backend: str
    size_bytes: int
    quota_bytes: int


class TrashSwept(Event, frozen=True):
    name = "trash.swept"
    level = "debug"
    directories: int
    took_ms: float


class MemoryPressure(Event, frozen=True):
    name = "memory.pressure"
    level = "warning"
    is_pressed: bool


class Fault(Event, frozen=True):
    """Something that should not happen; the words are the exception's, with its place."""

    name = "fault"
    level = "error"
    where: str
    cause: str
