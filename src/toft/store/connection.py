"""The state store: one SQLite file in WAL mode with one writer, toftd.

Statements take microseconds and run on the event loop. A commit does not wait for the disk
(`synchronous=NORMAL`): after a power cut the last moments may be missing, never torn, and the backends of
those moments are gone with the host anyway.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toft.errors.backend import DiskFull
from toft.errors.daemon import HomeUnusable
from toft.host.files import is_disk_full
from toft.store.transaction import Transaction, Value

_SCHEMA = Path(__file__).parent / "schema"
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA busy_timeout = 2000",
)


class Store:
    """The open state file. Not shared between threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._in_our_words():
            self._connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
            try:
                for pragma in _PRAGMAS:
                    self._connection.execute(pragma)
                self._bring_up_to_date()
            except BaseException:
                self._connection.close()
                raise

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """All statements in the block are kept together, or none when it raises. They do not nest."""
        with self._in_our_words():
            self._connection.execute("BEGIN IMMEDIATE")
            tx = Transaction(self._connection)
            try:
                yield tx
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            tx.was_kept()

    def rows(self, sql: str, *params: Value) -> list[tuple[Any, ...]]:
        """All rows of one query."""
        with self._in_our_words():
            return self._connection.execute(sql, params).fetchall()

    def close(self) -> None:
        """Fold the write-ahead log into the file and close it."""
        self._connection.close()

    def _bring_up_to_date(self) -> None:
        """Run the schema files that this state has not seen, each in a transaction of its own."""
        (have,) = self._connection.execute("PRAGMA user_version").fetchone()
        for number, path in schema_files():
            if number > have:
                self._connection.executescript(
                    f"BEGIN IMMEDIATE;\n{path.read_text()}\nPRAGMA user_version = {number};\nCOMMIT;"
                )

    @contextmanager
    def _in_our_words(self) -> Generator[None]:
        """What SQLite says about the disk becomes the error that a user can act on."""
        try:
            yield
        except sqlite3.OperationalError as error:
            is_trouble = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_IOERR and is_disk_full(
                self.path.parent
            )
            if is_trouble or error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                raise DiskFull(path=str(self.path.parent)) from error
            if error.sqlite_errorcode & 0xFF in (
                sqlite3.SQLITE_READONLY,
                sqlite3.SQLITE_CANTOPEN,
                sqlite3.SQLITE_IOERR,
            ):
                raise HomeUnusable(path=str(self.path.parent), cause=str(error)) from error
            raise
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise HomeUnusable(path=str(self.path), cause="the state file is damaged") from error
            raise


def schema_files() -> list[tuple[int, Path]]:
    """The numbered files of the schema, in order."""
    return sorted((int(path.name.split("_", 1)[0]), path) for path in _SCHEMA.glob("*.sql"))
