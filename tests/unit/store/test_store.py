"""The state store keeps all of a transaction or nothing, and says disk faults in our words."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from toft.errors.daemon import HomeUnusable
from toft.store.connection import Store, schema_files


def facts(store: Store) -> list[tuple[str, str]]:
    return [(name, value) for name, value in store.rows("SELECT name, value FROM fact ORDER BY name")]


def test_schema_is_applied_once(tmp_path: Path) -> None:
    """A new file gets the whole schema; opening it again changes nothing."""
    Store(tmp_path / "s").close()
    store = Store(tmp_path / "s")
    [(version,)] = store.rows("PRAGMA user_version")
    assert version == schema_files()[-1][0]
    store.close()


def test_a_transaction_is_kept(tmp_path: Path) -> None:
    """What was committed is there after a restart, and what was to follow has been called."""
    store = Store(tmp_path / "s")
    called: list[str] = []
    with store.transaction() as tx:
        tx.execute("INSERT INTO fact VALUES ('a', '1')")
        tx.then(lambda: called.append("then"))
        assert not called
    store.close()
    assert called == ["then"]
    store = Store(tmp_path / "s")
    assert facts(store) == [("a", "1")]
    store.close()


def test_a_failed_transaction_leaves_nothing(tmp_path: Path) -> None:
    """Neither in the store nor in memory."""
    store = Store(tmp_path / "s")
    called: list[str] = []
    with pytest.raises(sqlite3.IntegrityError), store.transaction() as tx:
        tx.then(lambda: called.append("then"))
        tx.execute("INSERT INTO fact VALUES ('a', '1')")
        tx.execute("INSERT INTO fact VALUES ('a', '2')")
    with pytest.raises(ValueError, match="ours"), store.transaction() as tx:
        tx.execute("INSERT INTO fact VALUES ('a', '1')")
        raise ValueError("ours")
    assert facts(store) == []
    assert not called
    store.close()


def test_a_backend_serves_one_lease(tmp_path: Path) -> None:
    """The store itself refuses a second lease on a backend, even after the first has ended."""
    store = Store(tmp_path / "s")
    row = "INSERT INTO lease VALUES (?, 'b_1', '', NULL, '', 1, 0, '', 1, '{}', '[]', NULL, NULL)"
    with store.transaction() as tx:
        tx.execute(row, "l_1")
        tx.execute("UPDATE lease SET ended_at = 'x', ended_reason = 'y'")
    with pytest.raises(sqlite3.IntegrityError), store.transaction() as tx:
        tx.execute(row, "l_2")
    store.close()


def test_a_damaged_file_is_said(tmp_path: Path) -> None:
    """A file that is no database ends in a sentence for the user."""
    (tmp_path / "s").write_bytes(b"this is not a database, however long it may be" * 100)
    with pytest.raises(HomeUnusable, match="damaged"):
        Store(tmp_path / "s")


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    """So does a home that is not there."""
    with pytest.raises(HomeUnusable):
        Store(tmp_path / "nowhere" / "s")
