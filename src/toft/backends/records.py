"""All SQL about backends, their snapshots and templates."""

from __future__ import annotations

from typing import Any

import msgspec

from toft.backends.backend import Backend, Wish
from toft.backends.recipe import Recipe
from toft.ids import BackendId, LeaseId, TemplateKey
from toft.protocol.worker import Secrets, ServiceSettings
from toft.store.connection import Store
from toft.store.transaction import Transaction

_COLUMNS = (
    "id, template_key, engine_id, wish, is_leased, http_port, db_port, uid, settings, secrets, is_cloned,"
    " is_primed, pid, pid_ticks, failure, created_at, created_mono, snapshot, swap,"
    " edition"
)


def insert(tx: Transaction, backend: Backend) -> None:
    """A new backend."""
    tx.execute(
        f"INSERT INTO backend ({_COLUMNS}) VALUES ({', '.join('?' * 20)})",
        backend.id,
        backend.template_key,
        backend.engine_id,
        backend.wish.value,
        int(backend.is_leased),
        backend.http_port,
        backend.db_port,
        backend.uid,
        msgspec.json.encode(backend.settings).decode(),
        msgspec.json.encode(backend.secrets).decode(),
        int(backend.is_cloned),
        int(backend.is_primed),
        backend.pid,
        backend.pid_ticks,
        backend.failure,
        backend.created_at,
        backend.created_mono,
        backend.snapshot,
        backend.swap,
        backend.edition,
    )


def update(tx: Transaction, backend: Backend) -> None:
    """Keep what can change of a backend."""
    tx.execute(
        "UPDATE backend SET wish = ?, is_leased = ?, http_port = ?, db_port = ?, secrets = ?,"
        " is_cloned = ?, is_primed = ?, pid = ?, pid_ticks = ?, failure = ?, snapshot = ?, swap = ?,"
        " edition = ? WHERE id = ?",
        backend.wish.value,
        int(backend.is_leased),
        backend.http_port,
        backend.db_port,
        msgspec.json.encode(backend.secrets).decode(),
        int(backend.is_cloned),
        int(backend.is_primed),
        backend.pid,
        backend.pid_ticks,
        backend.failure,
        backend.snapshot,
        backend.swap,
        backend.edition,
        backend.id,
    )


def delete(tx: Transaction, backend_id: BackendId) -> None:
    """Nothing is left of it."""
    tx.execute("DELETE FROM backend WHERE id = ?", backend_id)


def load_all(store: Store) -> list[Backend]:
    """Every backend that has a record."""
    return [_backend(row) for row in store.rows(f"SELECT {_COLUMNS} FROM backend ORDER BY created_mono, id")]


def _backend(row: tuple[Any, ...]) -> Backend:
    return Backend(
        id=BackendId(row[0]),
        template_key=TemplateKey(row[1]),
        engine_id=row[2],
        wish=Wish(row[3]),
        is_leased=bool(row[4]),
        http_port=row[5],
        db_port=row[6],
        uid=row[7],
        settings=msgspec.json.decode(row[8], type=ServiceSettings),
        secrets=msgspec.json.decode(row[9], type=Secrets | None),
        is_cloned=bool(row[10]),
        is_primed=bool(row[11]),
        pid=row[12],
        pid_ticks=row[13],
        failure=row[14],
        created_at=row[15],
        created_mono=row[16],
        snapshot=row[17],
        swap=row[18],
        edition=row[19],
    )


class TemplateRecord(msgspec.Struct, frozen=True):
    """What is known of a template beside its directory. used_mono: when a lease last asked for it."""

    key: TemplateKey
    kind: str
    size_bytes: int
    used_mono: float
    recipe: Recipe | None


def save_template(tx: Transaction, template: TemplateRecord) -> None:
    """A template that was made, or used again."""
    tx.execute(
        "INSERT INTO template (key, kind, size_bytes, used_mono, recipe) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET size_bytes = excluded.size_bytes, used_mono = excluded.used_mono,"
        " recipe = COALESCE(excluded.recipe, recipe)",
        template.key,
        template.kind,
        template.size_bytes,
        template.used_mono,
        msgspec.json.encode(template.recipe).decode() if template.recipe else None,
    )


def touch_template(tx: Transaction, key: TemplateKey, used_mono: float) -> None:
    """A lease asked for this template."""
    tx.execute("UPDATE template SET used_mono = ? WHERE key = ?", used_mono, key)


def delete_template(tx: Transaction, key: TemplateKey) -> None:
    """Its directory is gone, or on its way."""
    tx.execute("DELETE FROM template WHERE key = ?", key)


def load_templates(store: Store) -> list[TemplateRecord]:
    """Every known template, the one used longest ago first."""
    rows = store.rows("SELECT key, kind, size_bytes, used_mono, recipe FROM template ORDER BY used_mono")
    return [
        TemplateRecord(
            key=TemplateKey(row[0]),
            kind=row[1],
            size_bytes=row[2],
            used_mono=row[3],
            recipe=msgspec.json.decode(row[4], type=Recipe) if row[4] else None,
        )
        for row in rows
    ]


_SNAPSHOT_COLUMNS = "id, lease_id, name, created_at, size_bytes, pause_ms"


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of a backend. name: empty for one that only forks are made of. pause_ms: what it cost."""

    id: str
    lease_id: LeaseId
    name: str
    created_at: str
    size_bytes: int
    pause_ms: float


def insert_snapshot(tx: Transaction, snapshot: Snapshot) -> None:
    """A checkpoint that was made."""
    tx.execute(
        f"INSERT INTO snapshot ({_SNAPSHOT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
        *msgspec.structs.astuple(snapshot),
    )


def delete_snapshot(tx: Transaction, snapshot_id: str) -> None:
    """Its files are on their way out."""
    tx.execute("DELETE FROM snapshot WHERE id = ?", snapshot_id)


def load_snapshots(store: Store) -> list[Snapshot]:
    """Every checkpoint."""
    return [
        Snapshot(
            id=row[0],
            lease_id=LeaseId(row[1]),
            name=row[2],
            created_at=row[3],
            size_bytes=row[4],
            pause_ms=row[5],
        )
        for row in store.rows(f"SELECT {_SNAPSHOT_COLUMNS} FROM snapshot")
    ]
