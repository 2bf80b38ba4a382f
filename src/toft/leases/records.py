"""All SQL about leases. What ends stays for a while, so that a late caller learns why."""

from __future__ import annotations

from typing import Any

import msgspec

from toft.ids import BackendId, LeaseId
from toft.leases.lease import Lease
from toft.protocol.lease import TemplateUse
from toft.store.connection import Store
from toft.store.transaction import Transaction

#: So many ended leases are remembered.
KEPT_ENDED = 1000
_COLUMNS = (
    "id, backend_id, label, project, credential_digest, ttl_seconds, is_held, created_at, expires_mono,"
    " template, notices"
)


def insert(tx: Transaction, lease: Lease) -> None:
    """A new live lease."""
    tx.execute(
        f"INSERT INTO lease ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        lease.id,
        lease.backend_id,
        lease.label,
        lease.project,
        lease.credential_digest,
        lease.ttl_seconds,
        int(lease.is_held),
        lease.created_at,
        lease.expires_mono,
        msgspec.json.encode(lease.template).decode(),
        msgspec.json.encode(lease.notices).decode(),
    )


def update(tx: Transaction, lease: Lease) -> None:
    """Keep what can change of a live lease: its times, its hold and its notices."""
    tx.execute(
        "UPDATE lease SET ttl_seconds = ?, is_held = ?, expires_mono = ?, notices = ? WHERE id = ?",
        lease.ttl_seconds,
        int(lease.is_held),
        lease.expires_mono,
        msgspec.json.encode(lease.notices).decode(),
        lease.id,
    )


def end(tx: Transaction, lease_id: LeaseId, at: str, reason: str) -> None:
    """Mark a lease as ended; the oldest ended ones beyond `KEPT_ENDED` are forgotten."""
    tx.execute(
        "UPDATE lease SET ended_at = ?, ended_reason = ? WHERE id = ? AND ended_at IS NULL",
        at,
        reason,
        lease_id,
    )
    tx.execute(
        "DELETE FROM lease WHERE ended_at <= (SELECT ended_at FROM lease WHERE ended_at IS NOT NULL"
        " ORDER BY ended_at DESC LIMIT 1 OFFSET ?)",
        KEPT_ENDED,
    )


def load_live(store: Store) -> list[Lease]:
    """All live leases, oldest first."""
    rows = store.rows(f"SELECT {_COLUMNS} FROM lease WHERE ended_at IS NULL ORDER BY created_at, id")
    return [_lease(row) for row in rows]


def load_end(store: Store, lease_id: str) -> str | None:
    """Why a lease ended, or None if it is not known to have ended."""
    rows = store.rows("SELECT ended_reason FROM lease WHERE id = ? AND ended_at IS NOT NULL", lease_id)
    return rows[0][0] if rows else None


def _lease(row: tuple[Any, ...]) -> Lease:
    return Lease(
        id=LeaseId(row[0]),
        backend_id=BackendId(row[1]),
        label=row[2],
        project=row[3],
        credential_digest=row[4],
        ttl_seconds=row[5],
        is_held=bool(row[6]),
        created_at=row[7],
        expires_mono=row[8],
        template=msgspec.json.decode(row[9], type=TemplateUse),
        notices=msgspec.json.decode(row[10], type=tuple[str, ...]),
    )
