"""One transaction: statements that are all kept or none."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

type Value = str | int | float | bytes | None


class Transaction:
    """Handed out by `Store.transaction`; statements run at once, and count when its block ends well."""

    __slots__ = ("_afterwards", "_connection")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._afterwards: list[Callable[[], None]] = []

    def execute(self, sql: str, *params: Value) -> int:
        """Run one statement; the number of rows it changed."""
        return self._connection.execute(sql, params).rowcount

    def rows(self, sql: str, *params: Value) -> list[tuple[Any, ...]]:
        """All rows of one query."""
        return self._connection.execute(sql, params).fetchall()

    def then(self, call: Callable[[], None]) -> None:
        """Have this called when the transaction was kept, so that memory never runs ahead of the store."""
        self._afterwards.append(call)

    def was_kept(self) -> None:
        """Called by the store."""
        for call in self._afterwards:
            call()
