"""The typed driver, asyncpg, behind one adapter: for SQL that wants Python values instead of raw bytes.

This is the only file that imports it. Its exceptions become those of `sqlstate.py`; its pool is not used, for
ours holds nothing while idle and is the same for both drivers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Final, Literal, cast, override

import asyncpg

from toft.pg.connection import CONNECT_SECONDS, STATEMENTS_KEPT
from toft.pg.pool import Pool
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable

type Record = Mapping[str, Any]
type Isolation = Literal["read_committed", "repeatable_read", "serializable"]

_NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})

#: asyncpg has no type stubs
_connect: Final = cast("Callable[..., Awaitable[Any]]", asyncpg.connect)  # pyright: ignore[reportUnknownMemberType]  (no stubs)

#: asyncpg's names of an error's fields, by the protocol's letters
_FIELDS: Final = {
    "V": "severity_en",
    "C": "sqlstate",
    "M": "message",
    "D": "detail",
    "H": "hint",
    "P": "position",
    "p": "internal_position",
    "q": "internal_query",
    "W": "context",
    "s": "schema_name",
    "t": "table_name",
    "c": "column_name",
    "d": "data_type_name",
    "n": "constraint_name",
    "F": "server_source_filename",
    "L": "server_source_line",
    "R": "server_source_function",
}


async def connect_typed(
    socket_path: str,
    user: str,
    password: str,
    database: str = "postgres",
    options: Mapping[str, str] = _NO_OPTIONS,
) -> TypedConnection:
    """Connect through a Unix socket (`…/.s.PGSQL.5432`). Raises as `connection.connect` does."""
    path = PurePath(socket_path)
    try:
        with _our_errors():
            driver = await _connect(
                host=str(path.parent),
                port=int(path.name.rpartition(".")[2]),
                user=user,
                password=password,
                database=database,
                ssl=False,
                timeout=CONNECT_SECONDS,
                server_settings=dict(options),
                statement_cache_size=STATEMENTS_KEPT,
                max_cached_statement_lifetime=0,
            )
    except TimeoutError:
        raise Unreachable(f"{socket_path} did not answer within {CONNECT_SECONDS:.0f} seconds") from None
    except OSError as error:
        raise Unreachable(f"{socket_path}: {error.strerror or error}") from None
    return TypedConnection(driver)


async def typed_pool(
    socket_path: str,
    user: str,
    password: str,
    database: str = "postgres",
    options: Mapping[str, str] = _NO_OPTIONS,
    *,
    max_size: int = 4,
    idle_seconds: float = 60.0,
) -> Pool[TypedConnection]:
    """A pool over one server, tried once, so that a wrong address or password fails here."""
    pool = Pool(lambda: connect_typed(socket_path, user, password, database, options), max_size, idle_seconds)
    async with pool.lend():
        return pool


class TypedConnection:
    """A connection whose parameters and results are Python values, as asyncpg maps them.

    `json` and `jsonb` are texts, `uuid` is a UUID, `timestamptz` an aware datetime.
    """

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self.on_lost: Callable[[], None] | None = None
        driver.add_termination_listener(self._when_lost)

    @override
    def __repr__(self) -> str:
        return f"<TypedConnection{' lost' if self.is_broken else ''}>"

    @property
    def is_broken(self) -> bool:
        return cast(bool, self._driver.is_closed())

    @property
    def is_in_transaction(self) -> bool:
        """A transaction was begun and not yet ended."""
        return cast(bool, self._driver.is_in_transaction())

    @property
    def is_quiet(self) -> bool:
        """Usable, and in no transaction."""
        return not self.is_broken and not self.is_in_transaction

    @property
    def settling(self) -> asyncio.Task[None] | None:
        """None: asyncpg cancels and drains by itself before it sends the next query."""
        return None

    async def fetch(self, sql: str, *params: object) -> list[Record]:
        """All rows."""
        with _our_errors():
            return cast("list[Record]", await self._driver.fetch(sql, *params))

    async def fetch_row(self, sql: str, *params: object) -> Record | None:
        """The first row, if there is one."""
        with _our_errors():
            return cast("Record | None", await self._driver.fetchrow(sql, *params))

    async def fetch_value(self, sql: str, *params: object) -> Any:
        """The first value of the first row, or None."""
        with _our_errors():
            return await self._driver.fetchval(sql, *params)

    async def execute(self, sql: str, *params: object) -> str:
        """Run it and return the command tag. Without parameters `sql` may hold several statements."""
        with _our_errors():
            return cast(str, await self._driver.execute(sql, *params))

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run one statement for each row of parameters, as one transaction."""
        with _our_errors():
            await self._driver.executemany(sql, rows)

    @asynccontextmanager
    async def transaction(
        self, *, isolation: Isolation | None = None, read_only: bool = False
    ) -> AsyncGenerator[None]:
        """A transaction, or a savepoint inside one. Rolled back when the block raises."""
        with _our_errors():
            async with self._driver.transaction(isolation=isolation, readonly=read_only):
                yield

    def close(self) -> None:
        """Close at once."""
        self._driver.terminate()
        # the driver tells its listeners a tick later; a pool has to know before it looks at the next one
        self._when_lost(None)

    def _when_lost(self, _: object) -> None:
        on_lost, self.on_lost = self.on_lost, None
        if on_lost is not None:
            on_lost()


@contextmanager
def _our_errors() -> Generator[None]:
    """Turn asyncpg's exceptions into ours."""
    try:
        yield
    except asyncpg.PostgresError as error:
        fields = {letter: getattr(error, name, None) for letter, name in _FIELDS.items()}
        raise PostgresError({letter: str(value) for letter, value in fields.items() if value}) from None
    except (asyncpg.InterfaceError, asyncpg.InternalClientError, ConnectionResetError) as error:
        if isinstance(error, asyncpg.DataError | asyncpg.UnsupportedClientFeatureError):
            raise
        raise ConnectionLost(str(error)) from None
