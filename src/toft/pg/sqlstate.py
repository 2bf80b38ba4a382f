"""Pure: what goes wrong with Postgres: an error it reports, a connection that is lost or cannot be made.

Both drivers' failures are mapped to these three here or in `typed.py`, once, so that no service catches a
driver's exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping

UNIQUE_VIOLATION = "23505"
FOREIGN_KEY_VIOLATION = "23503"
NOT_NULL_VIOLATION = "23502"
CHECK_VIOLATION = "23514"
SERIALIZATION_FAILURE = "40001"
DEADLOCK_DETECTED = "40P01"
INSUFFICIENT_PRIVILEGE = "42501"
INVALID_PASSWORD = "28P01"  # noqa: S105  (a SQLSTATE)
FEATURE_NOT_SUPPORTED = "0A000"
UNDEFINED_PREPARED_STATEMENT = "26000"
QUERY_CANCELED = "57014"
ADMIN_SHUTDOWN = "57P01"
CANNOT_CONNECT_NOW = "57P03"
TOO_MANY_CONNECTIONS = "53300"


class PostgresError(Exception):
    """An error that the server reported.

    fields: as in the protocol's ErrorResponse, by their one-letter codes. statement_index: which statement of
    the pipeline (or script) failed, from 0; equal to their number when the commit itself failed (deferred
    constraints), and None when no statement was running.
    """

    def __init__(self, fields: Mapping[str, str], statement_index: int | None = None) -> None:
        self.fields = dict(fields)
        self.statement_index = statement_index
        super().__init__(fields, statement_index)

    def __str__(self) -> str:
        return f"{self.message} (SQLSTATE {self.sqlstate})"

    def __repr__(self) -> str:
        return f"PostgresError({self.sqlstate!r}, {self.message!r})"

    @property
    def severity(self) -> str:
        """ERROR, FATAL or PANIC, never translated."""
        return self.fields.get("V") or self.fields.get("S", "ERROR")

    @property
    def sqlstate(self) -> str:
        return self.fields.get("C", "XX000")

    @property
    def message(self) -> str:
        return self.fields.get("M", "")

    @property
    def detail(self) -> str | None:
        return self.fields.get("D")

    @property
    def hint(self) -> str | None:
        return self.fields.get("H")

    @property
    def position(self) -> int | None:
        """Where in the statement's text, in characters from 1."""
        raw = self.fields.get("P", "")
        return int(raw) if raw.isdecimal() else None

    @property
    def internal_query(self) -> str | None:
        return self.fields.get("q")

    @property
    def internal_position(self) -> int | None:
        raw = self.fields.get("p", "")
        return int(raw) if raw.isdecimal() else None

    @property
    def where(self) -> str | None:
        return self.fields.get("W")

    @property
    def schema(self) -> str | None:
        return self.fields.get("s")

    @property
    def table(self) -> str | None:
        return self.fields.get("t")

    @property
    def column(self) -> str | None:
        return self.fields.get("c")

    @property
    def constraint(self) -> str | None:
        return self.fields.get("n")

    @property
    def routine(self) -> str | None:
        """The function of the server's source that reported it; a tenant's RAISE cannot forge it."""
        return self.fields.get("R")


class ConnectionLost(Exception):
    """The server closed the connection, or broke the protocol, while an answer was awaited.

    Whether a statement in flight was carried out is unknown.
    """


class Unreachable(Exception):
    """No connection could be made: nothing listens there, or it did not answer in time."""
