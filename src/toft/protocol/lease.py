"""Pure: the messages about leases, on both sides of the control API.

A lease is taken by `CreateLease` and described by `Lease`. A *held* lease lives as long as the stream that
the request opened: its lines are `StreamLine`s, one JSON object per line, in this order: any number of
`progress`, then one `lease` or one `error` (which ends the stream), then, much later, `notice`s and at last
`ended`.
"""

from __future__ import annotations

from typing import Any

import msgspec

#: A lease that nobody gives a time to live gets this one.
DEFAULT_TTL_SECONDS = 30 * 60
#: The holder of a lease has so long to come back after the daemon was restarted.
GRACE_SECONDS = 30


class CreateLease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask for a backend. `project`: the digest of a Bundle that the daemon has; None: an empty backend.

    hold: the answer is a stream, and the lease ends when it closes. label: the user's own name for it.
    http_port, db_port: wanted ports, else the daemon's choice. The rest are the options of `toft run`.
    """

    version: str
    project: str | None = None
    ttl_seconds: float = DEFAULT_TTL_SECONDS
    hold: bool = False
    label: str = ""
    http_port: int | None = None
    db_port: int | None = None
    include_all: bool = False
    no_migrations: bool = False
    no_seed: bool = False
    migrations_dir: str | None = None


class HoldLease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hold a lease by this stream, with the credential that its creation returned."""

    credential: str

    def __repr__(self) -> str:
        return "HoldLease(…)"


class RenewLease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Let the lease end `ttl_seconds` from now. `hold=False` lets go of it: then only time ends it.

    A credential that is given must be right; without one, whoever may use the socket may renew.
    """

    ttl_seconds: float
    credential: str | None = None
    hold: bool | None = None

    def __repr__(self) -> str:
        return f"RenewLease(ttl_seconds={self.ttl_seconds}, hold={self.hold})"


class TemplateUse(msgspec.Struct, frozen=True):
    """What a backend was cloned from. applied: files that were run because of this lease; 0 when cached."""

    key: str
    was_cached: bool
    applied: int


class LeaseSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A lease without its secrets. Instants are ISO 8601 in UTC; `expires_at` is for reading only."""

    id: str
    backend_id: str
    label: str
    state: str
    created_at: str
    expires_at: str
    ttl_seconds: float
    held: bool
    host: str
    http_port: int
    db_port: int
    url: str
    notices: list[str]
    template: TemplateUse


class Lease(LeaseSummary, frozen=True, kw_only=True, omit_defaults=True):
    """A lease with all that its holder needs. `credential` is present only in the answer that created it."""

    user: str
    password: str
    database: str
    anon_key: str
    service_role_key: str
    publishable_key: str
    secret_key: str
    jwt_secret: str
    s3_access_key_id: str
    s3_secret_access_key: str
    credential: str | None = None

    def __repr__(self) -> str:
        return f"Lease({self.id!r})"


class StreamLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a held lease's stream; exactly one member is present."""

    progress: str | None = None
    lease: Lease | None = None
    error: dict[str, Any] | None = None
    notice: str | None = None
    ended: str | None = None
