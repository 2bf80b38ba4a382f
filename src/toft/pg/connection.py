"""A connection to Postgres that does in one write, and so in one round trip, what a request needs.

`pipeline` writes Parse (where a statement is new), Bind and Execute for each statement and one Sync: the
server runs them as one implicit transaction, rolled back as a whole when any of them fails. No answer counts
before ReadyForQuery, since deferred constraints fail at the commit. A transaction may also span calls
(`script("begin")` …).

One exchange runs at a time. When its task is cancelled, the query is cancelled at the server and the
connection settles by itself: it is usable again, or closed, a moment later (`pool.py` waits for that).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, cast, override

from toft.pg import wire
from toft.pg.dial import Dialer, UnixDialer
from toft.pg.login import Login, LoginRefused
from toft.pg.sqlstate import (
    FEATURE_NOT_SUPPORTED,
    UNDEFINED_PREPARED_STATEMENT,
    ConnectionLost,
    PostgresError,
    Unreachable,
)
from toft.pg.wire import IDLE, IN_FAILED_TRANSACTION, Column, ProtocolViolation, Replies, Result, Statement
from toft.world import Entropy, SystemEntropy

CONNECT_SECONDS: Final = 10.0
#: How long a cancelled query may take to stop before its connection is given up.
SETTLE_SECONDS: Final = 5.0
#: Prepared statements kept per connection.
STATEMENTS_KEPT: Final = 200
#: Below so many, nothing is going to be thrown out, and which was used last need not be recorded.
_ORDER_MATTERS: Final = STATEMENTS_KEPT // 2

_NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})

type Fields = dict[str, str]
type Answer = tuple[list[Result], Fields | None]
type _Described = tuple[int, _Prepared]


async def connect(
    socket_path: str,
    user: str,
    password: str,
    database: str = "postgres",
    options: Mapping[str, str] = _NO_OPTIONS,
) -> Connection:
    """Connect through a Unix socket. Raises `Unreachable`, `ConnectionLost`, `PostgresError`.

    options: settings of the session, as the startup message carries them (`application_name`, `search_path`).
    """
    return await connect_by(UnixDialer(socket_path), user, password, database, options)


async def connect_by(
    dialer: Dialer,
    user: str,
    password: str,
    database: str = "postgres",
    options: Mapping[str, str] = _NO_OPTIONS,
    *,
    entropy: Entropy | None = None,
) -> Connection:
    """Connect by any `Dialer`: see `dial.py` for TCP and TLS."""
    login = Login(user, password, (entropy or SystemEntropy()).bytes(18))
    hello = wire.startup({"user": user, "database": database, "client_encoding": "UTF8", **options})
    connection = Connection(dialer, hello, login)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await dialer.dial(lambda: connection)
            await connection.ready()
    except TimeoutError:
        connection.abort()
        raise Unreachable(f"{dialer} did not answer within {CONNECT_SECONDS:.0f} seconds") from None
    except OSError as error:
        connection.abort()
        raise Unreachable(f"{dialer}: {error.strerror or error}") from None
    except BaseException:
        connection.abort()
        raise
    return connection


class Connection(asyncio.Protocol):
    """See the module. Made by `connect`."""

    def __init__(self, dialer: Dialer, hello: bytes, login: Login) -> None:
        self._dialer = dialer
        self._hello = hello
        self._login: Login | None = login
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.WriteTransport | None = None
        self._replies = Replies(self._on_ready, self._on_other)
        #: resolves at the next ReadyForQuery; the log-in ends with the first
        self._exchange: asyncio.Future[Answer] | None = self._loop.create_future()
        self._greeting = self._exchange
        #: how many statements it has; None for the simple protocol
        self._expected: int | None = None
        #: it carries what COPY FROM STDIN reads
        self._feeds = False
        self._settling: asyncio.Task[None] | None = None
        self._kept = _Kept()
        self._backend_key = b""
        self._lost_because: str | None = None
        self._closed: asyncio.Future[None] = self._loop.create_future()
        #: what its user wants to remember about it
        self.note: object = None
        #: what the server reports: server_version, TimeZone …
        self.parameters: dict[str, str] = {}
        self.on_notice: Callable[[Fields], None] | None = None
        #: called with channel and payload
        self.on_notification: Callable[[str, str], None] | None = None
        #: called once, when the connection is gone
        self.on_lost: Callable[[], None] | None = None

    @override
    def __repr__(self) -> str:
        return f"<Connection {self._dialer} pid={self.backend_pid}{' lost' if self.is_broken else ''}>"

    @property
    def backend_pid(self) -> int:
        return int.from_bytes(self._backend_key[:4], "big")

    @property
    def is_broken(self) -> bool:
        """Closed by either side: of no more use."""
        return self._lost_because is not None

    @property
    def is_in_transaction(self) -> bool:
        """A transaction was begun and not yet ended."""
        return self._replies.status != IDLE

    @property
    def has_failed(self) -> bool:
        """Something in the transaction failed: it can only be rolled back."""
        return self._replies.status == IN_FAILED_TRANSACTION

    @property
    def is_quiet(self) -> bool:
        """Usable, with nothing going on."""
        return (
            self._exchange is None
            and self._settling is None
            and self._lost_because is None
            and self._replies.status == IDLE
        )

    @property
    def settling(self) -> asyncio.Task[None] | None:
        """While a cancelled exchange comes to its end: the task after which this is usable or broken."""
        return self._settling

    async def pipeline(self, statements: Sequence[Statement]) -> list[Result]:
        """Run the statements in one round trip and, unless a transaction is open, as one transaction.

        Raises `PostgresError` (everything is rolled back then) or `ConnectionLost`. When the server has
        forgotten a prepared statement, or its result type has changed, all are prepared again and the
        pipeline runs once more; the transaction was rolled back before, so nothing happens twice.
        """
        began_idle = self._replies.status == IDLE
        results, error = await self._run(statements)
        if error is None:
            return results
        if began_idle:
            await self._end_transaction()
            if _is_stale(error) and not self.is_broken and not _has_committed(results):
                self.forget_statements()
                results, error = await self._run(statements)
                if error is None:
                    return results
                await self._end_transaction()
        raise PostgresError(error, len(results))

    async def script(self, sql: str) -> list[Result]:
        """Run SQL text by the simple protocol: one transaction, unless its statements say otherwise.

        COPY FROM STDIN is refused with an error; COPY TO STDOUT gives its lines as rows of one value.
        """
        await self._wait_settled()
        transport = self._take_turn()
        exchange = self._exchange = self._loop.create_future()
        self._expected = None
        self._feeds = False
        transport.write(wire.query(sql))
        try:
            results, error = await exchange
        except asyncio.CancelledError:
            self._abandon(exchange)
            raise
        if error is not None:
            raise PostgresError(error, len(results))
        return results

    async def query(self, sql: str, *params: str | bytes | None) -> list[list[str | None]]:
        """One statement, not kept; texts in, texts out."""
        raw = tuple(param.encode() if isinstance(param, str) else param for param in params)
        [result] = await self.pipeline([Statement(sql.encode(), raw)])
        return [[None if value is None else value.decode() for value in row] for row in result.rows]

    async def cancel(self) -> None:
        """Ask the server, by another connection, to cancel what runs here; return when it has been told."""
        teller = _CancelTeller(wire.cancel_request(self._backend_key), self._loop.create_future())
        try:
            await self._dialer.dial_plain(lambda: teller)
            await teller.told
        except OSError:
            pass
        finally:
            teller.close()

    def forget_statements(self) -> None:
        """Drop all prepared statements of this connection."""
        self._kept.clear()

    def close(self) -> None:
        """Say goodbye and close. What still runs is lost."""
        if self._transport is not None and not self.is_broken:
            self._transport.write(wire.TERMINATE)
            self._transport.close()
        self._lose("closed by us")

    def abort(self) -> None:
        """Close without a word."""
        if self._transport is not None:
            self._transport.abort()
        self._lose("closed by us")

    async def wait_closed(self) -> None:
        """Wait until the transport is gone; only who must leave nothing behind needs it."""
        await asyncio.shield(self._closed)

    async def ready(self) -> None:
        """Wait for the end of the log-in."""
        _, error = await self._greeting
        self._login = None
        if error is not None:
            raise PostgresError(error)

    # One exchange.

    async def _run(self, statements: Sequence[Statement]) -> Answer:
        if self._settling is not None:
            await self._wait_settled()
        exchange, described = self._send(statements)
        try:
            results, error = await exchange
        except asyncio.CancelledError:
            self._abandon(exchange)
            raise
        for index, prepared in described:
            if index >= len(results):
                break
            if prepared.columns is None:
                prepared.columns = results[index].columns
            else:
                results[index].columns = prepared.columns
        return results, error

    def _send(self, statements: Sequence[Statement]) -> tuple[asyncio.Future[Answer], list[_Described]]:
        """Write a pipeline; its answer, and which of its statements' columns are wanted."""
        transport = self._take_turn()
        out = self._kept.take_farewells()
        described: list[_Described] = []
        self._feeds = False
        try:
            for index, statement in enumerate(statements):
                prepared = self._kept.prepare(statement, out)
                out.append(wire.bind(prepared.name, statement.params, statement.binary, statement.more))
                if statement.describe:
                    described.append((index, prepared))
                    if prepared.columns is None:
                        out.append(wire.DESCRIBE)
                out.append(wire.EXECUTE)
                if statement.copied is not None:
                    out += wire.copy_data(statement.copied)
                    self._feeds = True
        except BaseException:
            self._kept.confirm(0)
            raise
        out.append(wire.SYNC)
        exchange = self._exchange = self._loop.create_future()
        self._expected = len(statements)
        transport.write(b"".join(out))
        return exchange, described

    def _take_turn(self) -> asyncio.WriteTransport:
        if self._lost_because is not None or self._transport is None:
            raise ConnectionLost(self._lost_because or "not connected yet")
        if self._exchange is not None:
            raise RuntimeError("this connection is busy with another task's query")
        return self._transport

    async def _wait_settled(self) -> None:
        if self._settling is not None:
            await asyncio.wait([self._settling])

    def _abandon(self, exchange: asyncio.Future[Answer]) -> None:
        """The task that waited was cancelled: bring what it began to an end without it."""
        if self._exchange is exchange:
            self._exchange = self._loop.create_future()
            self._settling = self._loop.create_task(self._settle(self._exchange))

    async def _settle(self, exchange: asyncio.Future[Answer]) -> None:
        """Bring an exchange that nobody waits for to its end.

        `cancel` has returned by then, so it cannot hit a later query.
        """
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                await self.cancel()
                await exchange
        except (TimeoutError, ConnectionLost):
            self.abort()
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            self._settling = None

    async def _end_transaction(self) -> None:
        """A transaction that the failed statements began themselves does not outlive them."""
        if self._replies.status == IN_FAILED_TRANSACTION and not self.is_broken:
            await self.script("rollback")

    def _on_ready(self) -> None:
        parsed = self._replies.parsed
        answer = self._replies.take()
        self._kept.confirm(parsed)
        exchange, self._exchange = self._exchange, None
        if exchange is not None and not exchange.done():
            exchange.set_result(answer)

    def _lose(self, because: str) -> None:
        if self._lost_because is not None:
            return
        self._lost_because = because
        answer = self._replies.take()
        exchange, self._exchange = self._exchange, None
        if exchange is not None and not exchange.done():
            if answer[1] is not None:
                exchange.set_result(answer)
            else:
                exchange.set_exception(ConnectionLost(because))
                exchange.exception()  # whoever awaits it still gets it; nobody has to
        if self.on_lost is not None:
            self.on_lost()

    # What the event loop calls.

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._transport.write(self._hello)

    @override
    def data_received(self, data: bytes) -> None:
        try:
            self._replies.feed(data)
        except (ProtocolViolation, LoginRefused) as error:
            self._lose(str(error))
            self.abort()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set_result(None)
        self._lose(str(exc) if exc else "the server closed the connection")

    def _on_other(self, kind: int, body: bytes) -> None:
        """The messages that are no part of an ordinary answer."""
        if kind == 0x4E:  # N: notice
            if self.on_notice is not None:
                self.on_notice(wire.read_fields(body))
        elif kind == 0x41:  # A: notification
            if self.on_notification is not None:
                channel, payload, _ = body[4:].decode("utf-8", "replace").split("\0", 2)
                self.on_notification(channel, payload)
        elif kind == 0x53:  # S: a parameter's value
            name, value, _ = body.decode("utf-8", "replace").split("\0", 2)
            self.parameters[name] = value
        elif kind == 0x4B:  # K: what a CancelRequest must show
            self._backend_key = body
        elif kind == 0x52 and self._login is not None and self._transport is not None:  # R: log-in
            reply = self._login.reply(body)
            if reply is not None:
                self._transport.write(reply)
        elif kind == 0x47 and self._transport is not None:  # G: COPY … FROM STDIN waits for data
            if not self._feeds:
                self._refuse_copy(self._transport)
        elif kind != 0x76:  # v: the server speaks no newer version; all else is unheard of
            raise ProtocolViolation(f"unknown message {kind:#04x}")

    def _refuse_copy(self, transport: asyncio.WriteTransport) -> None:
        refusal = wire.message(b"f", b"COPY FROM STDIN is not supported here\0")
        if self._expected is None:
            transport.write(refusal)
        elif len(self._replies.results) == self._expected - 1:
            # The server skips a Sync that comes while it waits for data, so it needs another.
            transport.write(refusal + wire.SYNC)
        # Otherwise it has met the next statement's message where data should be, and hangs up.


def _is_stale(error: Fields) -> bool:
    """Whether the server cannot use a prepared statement any more. RAISE cannot forge the routine."""
    code, routine = error.get("C"), error.get("R")
    return (code == FEATURE_NOT_SUPPORTED and routine == "RevalidateCachedQuery") or (
        code == UNDEFINED_PREPARED_STATEMENT and routine == "FetchPreparedStatement"
    )


def _has_committed(results: Sequence[Result]) -> bool:
    return any(result.raw_tag == b"COMMIT" for result in results)


class _Prepared:
    """A statement that the server keeps for this connection."""

    __slots__ = ("columns", "name", "sql")

    def __init__(self, name: bytes, sql: bytes) -> None:
        self.name = name
        self.sql = sql
        #: None until they were asked for once
        self.columns: tuple[Column, ...] | None = None


class _Kept:
    """The prepared statements of a connection by name key, least recently used first."""

    __slots__ = ("_by_key", "_farewells", "_names_made", "_unconfirmed")

    def __init__(self) -> None:
        self._by_key: dict[bytes, _Prepared] = {}
        #: Close messages for the next pipeline
        self._farewells: list[bytes] = []
        #: the Parse messages of the exchange in flight, in order; None for unnamed ones
        self._unconfirmed: list[bytes | None] = []
        self._names_made = 0

    def prepare(self, statement: Statement, out: list[bytes]) -> _Prepared:
        """The prepared statement for this one; adds a Parse message to `out` if the server lacks it."""
        key = statement.name_key
        if key is None:
            self._unconfirmed.append(None)
            out.append(wire.parse(b"", statement.sql))
            return _Prepared(b"", statement.sql)
        known = self._by_key.get(key)
        if known is not None:
            if len(self._by_key) > _ORDER_MATTERS:
                self._by_key[key] = self._by_key.pop(key)
            if known.sql == statement.sql:
                return known
            # A key that stands for two texts is a fault of the caller; running the wrong one would be worse.
            self._farewells.append(wire.close_statement(known.name))
            del self._by_key[key]
        self._names_made += 1
        fresh = self._by_key[key] = _Prepared(b"t%d" % self._names_made, statement.sql)
        self._unconfirmed.append(key)
        out.append(wire.parse(fresh.name, statement.sql))
        if len(self._by_key) > STATEMENTS_KEPT:
            oldest = self._by_key.pop(next(iter(self._by_key)))
            self._farewells.append(wire.close_statement(oldest.name))
        return fresh

    def confirm(self, parsed: int) -> None:
        """The exchange has ended and the server has carried out so many of its Parse messages."""
        if self._unconfirmed:
            for key in self._unconfirmed[parsed:]:
                if key is not None:
                    self._by_key.pop(key, None)
            self._unconfirmed.clear()

    def take_farewells(self) -> list[bytes]:
        """The beginning of the next pipeline."""
        farewells, self._farewells = self._farewells, []
        return farewells

    def clear(self) -> None:
        self._farewells.extend(wire.close_statement(kept.name) for kept in self._by_key.values())
        self._by_key.clear()


class _CancelTeller(asyncio.Protocol):
    """Sends a CancelRequest. The server answers by closing, once the signal is on its way."""

    def __init__(self, request: bytes, told: asyncio.Future[None]) -> None:
        self._request = request
        self._transport: asyncio.WriteTransport | None = None
        self.told = told

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._transport.write(self._request)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.told.done():
            self.told.set_result(None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
