"""The SQL port of a backend: clients' bytes go to the postmaster's Unix socket and back, untouched.

Only the opening is read, to decline encryption, to count connections and to wake a sleeping postmaster. From
then on each direction is one callback that writes what it was given; when one side is slow, the other is not
read.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Final, cast, override

from toft.gateway.sql_hello import NO_ENCRYPTION, Opening, fatal, is_between_messages, read_opening
from toft.gateway.upstream import Upstream
from toft.http.sockets import BACKLOG
from toft.pg.sqlstate import ADMIN_SHUTDOWN, CANNOT_CONNECT_NOW, TOO_MANY_CONNECTIONS, Unreachable

#: How long a client may take to say who it is.
OPENING_SECONDS: Final = 30.0
_PROTOCOL_VIOLATION: Final = "08P01"
#: Nobody has that much to say before the server has answered.
_LONGEST_OPENING: Final = 65536


class SqlPort:
    """Listens on one port for one backend."""

    def __init__(self, upstream: Upstream, max_connections: int) -> None:
        self.upstream = upstream
        self.max_connections = max_connections
        self.loop = asyncio.get_running_loop()
        #: when bytes last went through, on the loop's clock
        self.active_at = self.loop.time()
        self.sessions: set[_Session] = set()
        #: sessions past their opening: those that count
        self.connection_count = 0
        self._server: asyncio.Server | None = None

    async def listen(self, sock: socket.socket) -> None:
        """Accept on a socket."""
        self._server = await self.loop.create_server(lambda: _Opening(self), sock=sock, backlog=BACKLOG)

    def close(self) -> None:
        """Stop listening; connections stay."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def cut(self, reason: str, *, spares_waiting: bool = False) -> None:
        """End every connection at once; clients that are between two messages are told why.

        spares_waiting: those that do not talk to a postmaster yet may go on to the next one.
        """
        for session in tuple(self.sessions):
            if session.server is not None or not spares_waiting:
                session.cut(reason)


class _Session:
    """One client's connection, from its opening to its end."""

    __slots__ = ("_is_counted", "_task", "_timer", "client", "from_server", "port", "server")

    def __init__(self, port: SqlPort, client: asyncio.Transport) -> None:
        self.port = port
        self.client = client
        self.server: asyncio.Transport | None = None
        self.from_server: _Pipe | None = None
        self._is_counted = False
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = port.loop.call_later(OPENING_SECONDS, client.abort)
        port.sessions.add(self)

    @property
    def is_opened(self) -> bool:
        """The client has said what it wants."""
        return self._timer is None

    def open(self, packet: bytes, *, is_cancel: bool) -> None:
        """The client's wish is known: to cancel something, or to connect."""
        self._stop_timer()
        port = self.port
        if is_cancel:
            self._task = port.loop.create_task(self._pass_cancel(packet))
        elif port.connection_count >= port.max_connections:
            limit = port.max_connections
            self.refuse(TOO_MANY_CONNECTIONS, f"this backend already has {limit} connections, its limit")
        else:
            self._is_counted = True
            port.connection_count += 1
            port.active_at = port.loop.time()
            self._task = port.loop.create_task(self._join(packet))

    def refuse(self, sqlstate: str, message: str) -> None:
        """Say no as a server does."""
        self._stop_timer()
        self.client.write(fatal(sqlstate, message))
        self.client.close()

    def cut(self, reason: str) -> None:
        """End it at once, in the middle of whatever goes on."""
        pipe = self.from_server
        if pipe is None or is_between_messages(pipe.last):
            self.refuse(ADMIN_SHUTDOWN, f"terminating connection: {reason}")
        else:
            self.client.abort()
        if self.server is not None:
            self.server.abort()
        self.end()

    def end(self) -> None:
        """Either side has gone: so goes the other, after it has been given what is on its way."""
        self.port.sessions.discard(self)
        self._stop_timer()
        if self._is_counted:
            self._is_counted = False
            self.port.connection_count -= 1
            self.port.active_at = self.port.loop.time()
        if self._task is not None:
            self._task.cancel()
        self.client.close()
        if self.server is not None:
            self.server.close()

    async def _join(self, packet: bytes) -> None:
        loop = self.port.loop
        from_server = _Pipe(self, self.client)
        try:
            self.server, _ = await self.port.upstream.reach(
                lambda path: loop.create_unix_connection(lambda: from_server, path)
            )
        except Unreachable as error:
            self.refuse(CANNOT_CONNECT_NOW, str(error))
            return
        opening = cast(_Opening, self.client.get_protocol())
        self.client.set_protocol(_Pipe(self, self.server))
        self.from_server = from_server
        self.server.write(packet + opening.raw)

    async def _pass_cancel(self, packet: bytes) -> None:
        """Deliver a CancelRequest. Its sender waits for us to hang up, so that comes last."""
        loop = self.port.loop
        told: asyncio.Future[None] = loop.create_future()
        if self.port.upstream.is_awake:
            try:
                server, _ = await loop.create_unix_connection(
                    lambda: _Teller(told), self.port.upstream.socket_path
                )
                server.write(packet)
                await told
            except OSError:
                pass  # whoever is gone has nothing left to cancel
        self.client.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Opening(asyncio.Protocol):
    """The client's side until the server's is there."""

    __slots__ = ("_port", "_session", "raw")

    def __init__(self, port: SqlPort) -> None:
        self._port = port
        self._session: _Session
        #: what has arrived and is not yet understood or passed on
        self.raw = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._session = _Session(self._port, cast(asyncio.Transport, transport))

    @override
    def data_received(self, data: bytes) -> None:
        self.raw += data
        session = self._session
        while not session.is_opened:
            opening, size = read_opening(self.raw)
            if opening is Opening.INCOMPLETE:
                return
            packet, self.raw = self.raw[:size], self.raw[size:]
            if opening is Opening.ENCRYPTION:
                session.client.write(NO_ENCRYPTION)
            elif opening is Opening.UNKNOWN:
                session.refuse(_PROTOCOL_VIOLATION, "this port speaks the Postgres protocol 3, unencrypted")
            else:
                session.open(packet, is_cancel=opening is Opening.CANCEL)
        if len(self.raw) > _LONGEST_OPENING:
            session.client.abort()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._session.end()


class _Pipe(asyncio.Protocol):
    """One direction: what its own transport reads is written to the other one."""

    __slots__ = ("_now", "_other", "_port", "_session", "_write", "last")

    def __init__(self, session: _Session, other: asyncio.Transport) -> None:
        self._session = session
        self._port = session.port
        self._now = session.port.loop.time
        self._other = other
        self._write = other.write
        #: the last bytes that went through
        self.last = b""

    @override
    def data_received(self, data: bytes) -> None:
        self._write(data)
        self.last = data[-6:]
        self._port.active_at = self._now()

    @override
    def pause_writing(self) -> None:
        if not self._other.is_closing():
            self._other.pause_reading()

    @override
    def resume_writing(self) -> None:
        if not self._other.is_closing():
            self._other.resume_reading()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._session.end()


class _Teller(asyncio.Protocol):
    """Waits until the server hangs up, which it does when it has taken a CancelRequest."""

    __slots__ = ("_told",)

    def __init__(self, told: asyncio.Future[None]) -> None:
        self._told = told

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self._told.done():
            self._told.set_result(None)
