"""Knows which schema cache a database has now.

Where the database counts its DDL (`toft.schema_version`), each request checks the version as it runs, so a
cache is only read again when it is known to be outdated. Elsewhere a notification does that, and a request
that names something unknown; then a cache that was read a moment ago is believed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from toft.pg.connection import Connection
from toft.pg.pool import Pool
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.rest.errors import no_schema_cache
from toft.rest.schema.build import build
from toft.rest.schema.load import has_version, load_facts, load_timezones
from toft.rest.schema.store import Known, SchemaStore
from toft.world import Clock

#: without versions: for how long a cache is believed when a request names something that it lacks
_BELIEVED_SECONDS: Final = 1.0


class SchemaKeeper[P]:
    """The schema cache of one database."""

    def __init__(
        self,
        pool: Pool[Connection],
        store: SchemaStore[P],
        clock: Clock,
        *,
        schemas: Sequence[str],
        extra_search_path: Sequence[str],
        hoisted_settings: Sequence[str],
    ) -> None:
        self._pool = pool
        self._store = store
        self._clock = clock
        self._schemas = schemas
        self._extra_search_path = extra_search_path
        self._hoisted_settings = hoisted_settings
        # A backend that nobody has looked at yet most likely is what its template was.
        self._known: Known[P] | None = store.first
        self._is_versioned = self._known is not None
        self._timezones: frozenset[str] | None = None
        self._turn = asyncio.Lock()
        self._loaded_at = 0.0
        self.loads = 0
        self.load_seconds = 0.0

    @property
    def known(self) -> Known[P] | None:
        """The cache that is held, if one was loaded."""
        return self._known

    @property
    def is_versioned(self) -> bool:
        """Whether the database itself can tell that a cache is outdated."""
        return self._is_versioned

    async def current(self) -> Known[P]:
        """The cache to plan with. Raises PGRST002 when there is none to be had."""
        if self._known is not None:
            return self._known
        async with self._turn:
            return self._known or await self._load()

    def forget(self) -> None:
        """The next request reads the schema again: somebody said that it has changed."""
        if not self._is_versioned:
            self._known = None

    async def renew(self, version: str) -> Known[P]:
        """The cache for the version that the database has just told."""
        async with self._turn:
            if self._known is not None and self._known.schema.version == version:
                return self._known
            found = self._store.find(version)
            if found is not None:
                self._known = found
                return found
            return await self._load()

    async def fresher(self, than: Known[P]) -> Known[P]:
        """A newer cache than this one, or the same when it is still true."""
        async with self._turn:
            if self._known is not than and self._known is not None:
                return self._known
            if self._is_versioned:
                async with self._pool.lend() as connection:
                    [[version]] = await connection.query("select toft.schema_version()")
                if version == than.schema.version:
                    return than
            elif self._clock.mono() - self._loaded_at < _BELIEVED_SECONDS:
                return than
            return await self._load()

    async def timezones(self) -> frozenset[str]:
        """The names that may stand in `Prefer: timezone=`; asked for once."""
        if self._timezones is None:
            async with self._pool.lend() as connection:
                self._timezones = await load_timezones(connection)
        return self._timezones

    async def _load(self) -> Known[P]:
        began = self._clock.mono()
        try:
            async with self._pool.lend() as connection:
                if not self._is_versioned:
                    self._is_versioned = await has_version(connection)
                facts = await load_facts(
                    connection,
                    schemas=self._schemas,
                    extra_search_path=self._extra_search_path,
                    hoisted_settings=self._hoisted_settings,
                    is_versioned=self._is_versioned,
                    server_version=_major(connection),
                )
        except (PostgresError, ConnectionLost, Unreachable) as error:
            raise no_schema_cache() from error
        schema = build(facts, self._schemas)
        known = self._known
        if known is None or known.schema != schema:
            known = self._known = self._store.keep(schema)
        self._loaded_at = self._clock.mono()
        self.loads += 1
        self.load_seconds = self._loaded_at - began
        return known


def _major(connection: Connection) -> int:
    digits = connection.parameters.get("server_version", "").partition(".")[0]
    return int("".join(char for char in digits if char.isdigit()) or 0)
