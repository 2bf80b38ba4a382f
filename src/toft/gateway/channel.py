"""The daemon's channel: its wishes in, carried out one after the other; what waits to be woken out.

One daemon is served at a time: a new connection takes over, for the one before belongs to a daemon that has
gone. When no daemon is there, everything that is attached goes on being served.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, assert_never, cast, override

import msgspec

from toft import __version__
from toft.errors.backend import PortTaken
from toft.gateway.attach import Attachments, UnknownBackend
from toft.http.sockets import bind_path
from toft.protocol.worker import (
    AskLog,
    AskUsage,
    Attach,
    Attached,
    Detach,
    Done,
    Failed,
    FromWorker,
    Hello,
    Log,
    Relisten,
    SetAwake,
    Shutdown,
    ToWorker,
    Usage,
    Wake,
    Warm,
)

_LONGEST_MESSAGE: Final = 16 * 1024 * 1024

_log = logging.getLogger("toft.gateway")
_encode = msgspec.json.Encoder().encode
_decode: Final[Callable[[bytes], ToWorker]] = msgspec.json.Decoder(ToWorker).decode


class Channel:
    """Listens for daemons on a Unix socket and does what they say."""

    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments
        attachments.wake = self.wake
        #: set when a daemon has said that this worker shall end
        self.shutdown = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._daemon: _Link | None = None
        self._turn = asyncio.Lock()

    async def listen(self, path: Path) -> None:
        """Accept daemons on this socket file. Raises OSError."""
        sock = bind_path(path, 0o600)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Link(self), sock=sock)

    def wake(self, backend_id: str) -> None:
        """Ask the daemon to start this backend's postmaster. Without a daemon the next one is asked."""
        if self._daemon is not None:
            self._daemon.send(Wake(backend_id))

    def close(self) -> None:
        """Stop listening and hang up, when what is said has been sent."""
        if self._server is not None:
            self._server.close()
        if self._daemon is not None:
            self._daemon.close()

    # What a link calls.

    def take_over(self, link: _Link) -> None:
        if self._daemon is not None:
            self._daemon.abort()
        self._daemon = link

    def forget(self, link: _Link) -> None:
        if self._daemon is link:
            self._daemon = None

    async def carry_out(self, message: ToWorker) -> FromWorker:
        """The answer to one message, when it has been done."""
        async with self._turn:
            try:
                return await self._do(message)
            except PortTaken as error:
                return Failed(message.seq, "port-taken", str(error))
            except UnknownBackend as error:
                return Failed(message.seq, "unknown-backend", f"no backend {error} is attached here")
            except Exception as error:
                _log.exception("a message of the daemon failed: %s", type(message).__name__)
                return Failed(message.seq, "internal", f"{type(error).__name__}: {error}")

    async def _do(self, message: ToWorker) -> FromWorker:
        attachments = self._attachments
        match message:
            case Hello():
                attachments.ask_again()
                return Attached(message.seq, __version__, os.getpid(), attachments.ports)
            case Attach():
                await attachments.attach(message.spec)
            case Detach():
                attachments.detach(message.backend_id)
            case Relisten():
                await attachments.relisten(message.backend_id, message.http_port, message.db_port)
            case SetAwake():
                attachments.set_awake(message.backend_id, is_awake=message.is_awake, failure=message.failure)
            case Warm():
                attachments.warm(message.backend_id)
            case AskUsage():
                return Usage(message.seq, attachments.usage())
            case AskLog():
                return Log(message.seq, attachments.log(message.backend_id))
            case Shutdown():
                await attachments.close()
                self.shutdown.set()
            case _:
                assert_never(message)
        return Done(message.seq)


class _Link(asyncio.Protocol):
    """One connection of a daemon."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._transport: asyncio.WriteTransport
        self._raw = bytearray()
        self._inbox: asyncio.Queue[ToWorker | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def send(self, message: FromWorker) -> None:
        """Write one message."""
        raw = _encode(message)
        self._transport.write(len(raw).to_bytes(4, "big") + raw)

    def close(self) -> None:
        """Hang up when all is sent."""
        self._transport.close()

    def abort(self) -> None:
        """Hang up; what is being carried out is finished, its answer is not sent."""
        self._transport.abort()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._channel.take_over(self)
        self._task = asyncio.get_running_loop().create_task(self._work())

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._channel.forget(self)
        self._inbox.put_nowait(None)

    @override
    def data_received(self, data: bytes) -> None:
        self._raw += data
        while len(self._raw) >= 4:
            size = int.from_bytes(self._raw[:4], "big")
            if size > _LONGEST_MESSAGE:
                _log.error("a daemon sent a message of %d bytes", size)
                self._transport.abort()
                return
            if len(self._raw) < 4 + size:
                return
            raw = bytes(self._raw[4 : 4 + size])
            del self._raw[: 4 + size]
            try:
                self._inbox.put_nowait(_decode(raw))
            except msgspec.MsgspecError as error:
                _log.error("a daemon sent a message that is not understood: %s", error)
                self._transport.abort()
                return

    async def _work(self) -> None:
        while (message := await self._inbox.get()) is not None:
            answer = await self._channel.carry_out(message)
            if not self._transport.is_closing():
                self.send(answer)
