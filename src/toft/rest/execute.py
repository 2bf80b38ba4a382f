"""Sends what was rendered, in one round trip, and gives back the one row. It decides nothing.

A schema that has changed since the plan was made is `Stale`; other errors of Postgres pass through.
"""

from __future__ import annotations

from typing import Final, cast

from toft.pg.connection import Connection
from toft.pg.pool import Pool
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.pg.transaction import transaction
from toft.pg.wire import Result, Statement
from toft.rest.errors import cannot_connect, connection_lost, pool_timeout
from toft.rest.render.settings import settings_statement
from toft.rest.work import Work

_STALE: Final = "TF001"
_SERIALIZATION_FAILURE: Final = "40001"
#: A transaction that lost against a concurrent one is run again, as upstream's driver does.
_ATTEMPTS: Final = 5
_CHECK_CONSTRAINTS: Final = Statement(b"set constraints all immediate", (), b"check constraints")


#: what a connection's note says: the version and the snapshot in which it last found its schema as expected
type _Seen = tuple[str, bytes]


class Stale(Exception):
    """The database's schema is not the one that the plan was made for; `version` is what it is now."""

    def __init__(self, version: str) -> None:
        super().__init__(version)
        self.version = version


class Executor:
    """Runs work on the connections of one pool."""

    def __init__(self, pool: Pool[Connection], acquire_seconds: float) -> None:
        self._pool = pool
        self._acquire_seconds = acquire_seconds

    async def run(self, work: Work) -> list[Result]:
        """The results of `work.statements`. Raises `RestError`, `PostgresError`, `Stale`."""
        for attempt in range(_ATTEMPTS):
            try:
                return await self._run_once(work)
            except PostgresError as error:
                if error.sqlstate == _STALE:
                    raise Stale(error.detail or "") from None
                if error.sqlstate != _SERIALIZATION_FAILURE or attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _run_once(self, work: Work) -> list[Result]:
        connection = self._pool.take_free() or await self._wait_for_one()
        try:
            return await self._send(connection, work)
        except ConnectionLost as error:
            raise connection_lost(str(error)) from None
        finally:
            self._pool.give_back(connection)

    async def _wait_for_one(self) -> Connection:
        try:
            return await self._pool.take(self._acquire_seconds)
        except TimeoutError:
            raise pool_timeout() from None
        except (Unreachable, PostgresError) as error:
            # A server that lets nobody in, or has no such database, is as good as none.
            raise cannot_connect(str(error)) from None
        except ConnectionLost as error:
            raise connection_lost(str(error)) from None

    async def _send(self, connection: Connection, work: Work) -> list[Result]:
        version, seen = work.version, cast("_Seen | None", connection.note)
        is_explicit = work.rolls_back or work.isolation != "read committed"
        settings = settings_statement(
            work.settings,
            version=None if version is None else version.encode(),
            seen=seen[1] if seen is not None and seen[0] == version else None,
            is_read_only=work.is_read_only and not is_explicit,
        )
        statements = [settings, *work.before, *work.statements]
        if not is_explicit:
            results = await connection.pipeline(statements)
        else:
            if work.rolls_back:
                statements.append(_CHECK_CONSTRAINTS)
            results = await connection.pipeline(
                transaction(
                    statements,
                    isolation=work.isolation,
                    read_only=work.is_read_only,
                    rollback=work.rolls_back,
                )
            )
            results = results[1:]
        if version is not None and (snapshot := results[0].first_value) is not None:
            connection.note = (version, snapshot)
        first = 1 + len(work.before)
        return results[first : first + len(work.statements)]
