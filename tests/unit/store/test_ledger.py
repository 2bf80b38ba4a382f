"""The ledger is append-only, and shows what was done to it behind its back."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from toft.store.connection import Store
from toft.store.ledger import Ledger, find_break
from toft.world import SystemClock


@pytest.fixture
def store(tmp_path: Path):
    store = Store(tmp_path / "s")
    yield store
    store.close()


def test_entries_in_order(store: Store) -> None:
    """Entries come back in the order in which they were written, and the chain is whole."""
    ledger = Ledger(store, SystemClock())
    with store.transaction() as tx:
        ledger.append(tx, "lease.taken", "l_1", backend="b_1")
        ledger.append(tx, "lease.taken", "l_2", backend="b_2")
    with store.transaction() as tx:
        ledger.append(tx, "lease.ended", "l_1", reason="it was released")
    assert [(entry.kind, entry.subject) for entry in ledger.entries()] == [
        ("lease.taken", "l_1"),
        ("lease.taken", "l_2"),
        ("lease.ended", "l_1"),
    ]
    assert [entry.kind for entry in ledger.entries("l_1")] == ["lease.taken", "lease.ended"]
    assert find_break(ledger.entries()) is None


def test_an_entry_goes_with_its_transaction(store: Store) -> None:
    """What did not happen is not in the ledger, and its place is taken by what did."""
    ledger = Ledger(store, SystemClock())
    with pytest.raises(ValueError, match="no"), store.transaction() as tx:
        ledger.append(tx, "lease.taken", "l_1")
        raise ValueError("no")
    with store.transaction() as tx:
        ledger.append(tx, "lease.taken", "l_2")
    assert [entry.seq for entry in ledger.entries()] == [1]
    assert find_break(ledger.entries()) is None


@pytest.mark.parametrize("sql", ["UPDATE ledger SET subject = 'x'", "DELETE FROM ledger"])
def test_the_table_refuses_changes(store: Store, sql: str) -> None:
    """Neither a change nor a removal is possible by SQL."""
    with store.transaction() as tx:
        Ledger(store, SystemClock()).append(tx, "lease.taken", "l_1")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"), store.transaction() as tx:
        tx.execute(sql)
