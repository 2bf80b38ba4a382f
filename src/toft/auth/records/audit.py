"""The audit trail: one row per event that somebody may want to look up later."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from toft.auth.model import NIL, Json
from toft.pg.typed import Record, TypedConnection

#: which log an action belongs to
_LOG_TYPES = {
    "login": "account",
    "logout": "account",
    "invite_accepted": "account",
    "user_signedup": "team",
    "user_invited": "team",
    "user_deleted": "team",
    "token_revoked": "token",
    "token_refreshed": "token",
    "user_modified": "user",
    "user_recovery_requested": "user",
    "user_confirmation_requested": "user",
    "user_reauthenticate_requested": "user",
    "user_repeated_signup": "user",
    "user_updated_password": "user",
    "identity_linked": "user",
    "identity_unlinked": "user",
    "factor_in_progress": "factor",
    "factor_unenrolled": "factor",
    "challenge_created": "factor",
    "verification_attempted": "factor",
    "factor_deleted": "factor",
    "factor_updated": "factor",
}


class Actor(msgspec.Struct, frozen=True):
    """Who did it: a user, or the nil id and the name of an administrative role."""

    id: UUID
    name: str
    via_sso: bool = False
    full_name: str = ""


async def note(
    conn: TypedConnection,
    entry_id: UUID,
    actor: Actor,
    action: str,
    ip: str,
    now: datetime,
    traits: Json | None = None,
) -> None:
    """Append an event."""
    payload: dict[str, Any] = {
        "actor_id": str(actor.id),
        "actor_username": actor.name,
        "actor_via_sso": actor.via_sso,
        "action": action,
        "log_type": _LOG_TYPES[action],
    }
    if actor.full_name:
        payload["actor_name"] = actor.full_name
    if traits:
        payload["traits"] = traits
    await conn.execute(
        "insert into auth.audit_log_entries (instance_id, id, payload, created_at, ip_address)"
        " values ($1, $2, $3, $4, $5)",
        NIL, entry_id, msgspec.json.encode(payload).decode(), now, ip[:64],
    )  # fmt: skip


async def list_entries(
    conn: TypedConnection, member: str | None, pattern: str | None, limit: int, offset: int
) -> tuple[int, list[Record]]:
    """A page of events, newest first, and how many match. `member`: the payload's member to search in."""
    where = " where $1::text is null or payload ->> $1 ilike $2"
    total: int = await conn.fetch_value(
        "select count(*) from auth.audit_log_entries" + where, member, pattern
    )
    rows = await conn.fetch(
        "select id, payload, created_at, ip_address from auth.audit_log_entries"
        + where
        + " order by created_at desc, id limit $3 offset $4",
        member, pattern, limit, offset,
    )  # fmt: skip
    return total, rows
