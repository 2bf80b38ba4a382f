"""Pure: a lease as a value."""

from __future__ import annotations

import msgspec

from toft.ids import BackendId, LeaseId
from toft.protocol.lease import TemplateUse


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right to one backend until a moment in time.

    is_held: it ends with its holder's stream, not by time. expires_mono: when it ends, on the clock that
    never jumps, unless it is renewed or a holder is connected. credential_digest: SHA-256 of what proves the
    holder. created_at is ISO 8601 in UTC and only shown.
    """

    id: LeaseId
    backend_id: BackendId
    label: str
    project: str | None
    credential_digest: str
    ttl_seconds: float
    is_held: bool
    created_at: str
    expires_mono: float
    template: TemplateUse
    notices: tuple[str, ...] = ()
