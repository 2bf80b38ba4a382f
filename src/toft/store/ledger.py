"""The audit ledger: what happened to leases and backends, in order, each entry sealed by the one before it.

The chain is pure (`seal`, `find_break`): the digest of an entry covers its content and the digest of its
predecessor, so an entry that is changed, taken out or slipped in breaks every seal after it. The table
refuses UPDATE and DELETE.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from toft.store.connection import Store
from toft.store.transaction import Transaction
from toft.world import Clock

type Fact = str | int | float | bool | None

#: The predecessor of the first entry.
GENESIS = "0" * 64
_SELECT = "SELECT seq, at, kind, subject, facts, seal FROM ledger"


class Entry(msgspec.Struct, frozen=True):
    """One line of the ledger. `facts` is the JSON text that was sealed."""

    seq: int
    at: str
    kind: str
    subject: str
    facts: str
    seal: str


def seal(previous: str, seq: int, at: str, kind: str, subject: str, facts: str) -> str:
    """The digest that binds an entry to all before it; fields are framed by their length."""
    digest = hashlib.sha256(previous.encode())
    for field in (str(seq), at, kind, subject, facts):
        raw = field.encode()
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()


def find_break(entries: Iterable[Entry]) -> int | None:
    """The number of the first entry that does not follow from its predecessor, or None for a whole chain."""
    previous, expected = GENESIS, 1
    for entry in entries:
        wanted = seal(previous, entry.seq, entry.at, entry.kind, entry.subject, entry.facts)
        if entry.seq != expected or entry.seal != wanted:
            return entry.seq
        previous, expected = entry.seal, expected + 1
    return None


class Ledger:
    """Appends within a caller's transaction, so that a fact and its record cannot part."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def append(self, tx: Transaction, kind: str, subject: str, **facts: Fact) -> None:
        """Write one entry. `facts` hold no secret."""
        last = tx.rows("SELECT seq, seal FROM ledger ORDER BY seq DESC LIMIT 1")
        seq, previous = (last[0][0] + 1, last[0][1]) if last else (1, GENESIS)
        at = self._clock.now().isoformat(timespec="milliseconds")
        text = msgspec.json.encode(facts, order="deterministic").decode()
        tx.execute(
            "INSERT INTO ledger (seq, at, kind, subject, facts, seal) VALUES (?, ?, ?, ?, ?, ?)",
            seq,
            at,
            kind,
            subject,
            text,
            seal(previous, seq, at, kind, subject, text),
        )

    def entries(self, subject: str | None = None) -> list[Entry]:
        """All entries in order, or those about one subject."""
        if subject is None:
            rows = self._store.rows(f"{_SELECT} ORDER BY seq")
        else:
            rows = self._store.rows(f"{_SELECT} WHERE subject = ? ORDER BY seq", subject)
        return [Entry(*row) for row in rows]
