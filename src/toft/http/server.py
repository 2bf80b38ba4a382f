"""The one HTTP server: places that are listened on, around a plain `Handle`; `connection.py` does the rest.

A listener costs about as much as its socket, so every backend has its own, and the socket says which backend
is meant.
"""

from __future__ import annotations

import asyncio
import socket
from email.utils import formatdate
from pathlib import Path
from typing import cast

from toft.http.connection import Connection
from toft.http.message import Handle
from toft.http.sockets import BACKLOG, bind_path, bind_port
from toft.world import Clock, SystemClock


async def listen(
    handle: Handle,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    path: Path | None = None,
    mode: int = 0o600,
    sock: socket.socket | None = None,
    clock: Clock | None = None,
) -> Listener:
    """Serve `handle` on a TCP port (0: any free one), a Unix socket file of that mode, or a bound socket.

    Raises OSError when the place cannot be had. A stale socket file is replaced.
    """
    if path is not None:
        sock = bind_path(path, mode)
    elif sock is None:
        sock = bind_port(host, port or 0)
    listener = Listener(handle, sock, path, clock or SystemClock())
    try:
        await listener.start()
    except BaseException:
        sock.close()
        raise
    return listener


class Listener:
    """A place where requests arrive. Made by `listen`."""

    def __init__(self, handle: Handle, sock: socket.socket, path: Path | None, clock: Clock) -> None:
        self.handle = handle
        self.clock = clock
        self.connections: set[Connection] = set()
        #: work that goes on after its connection has gone
        self.ending: set[asyncio.Task[None]] = set()
        self.loop = asyncio.get_running_loop()
        name = cast("tuple[str, int] | str", sock.getsockname())
        #: the TCP port; 0 for a Unix socket
        self.port = 0 if isinstance(name, str) else name[1]
        self._sock = sock
        self._path = path
        self._server: asyncio.Server | None = None
        self._date = (0, b"")

    @property
    def in_flight(self) -> int:
        """Requests that are being answered."""
        return len(self._tasks())

    async def start(self) -> None:
        self._server = await self.loop.create_server(
            lambda: Connection(self, self.loop), sock=self._sock, backlog=BACKLOG
        )

    async def close(self, grace_seconds: float = 0.0) -> None:
        """Stop listening and close idle connections; requests in flight have `grace_seconds` to end."""
        self._stop_listening()
        for connection in tuple(self.connections):
            connection.shut_down()
        if grace_seconds and (tasks := self._tasks()):
            await asyncio.wait(tasks, timeout=grace_seconds)
        self.cut()
        await self.wait_quiet()

    def cut(self) -> None:
        """Stop listening, close every connection and cancel what runs, at once."""
        self._stop_listening()
        for connection in tuple(self.connections):
            connection.abort()

    async def wait_quiet(self) -> None:
        """Wait until no request is being answered."""
        if tasks := self._tasks():
            await asyncio.wait(tasks)

    def _tasks(self) -> set[asyncio.Task[None]]:
        return self.ending | {connection.task for connection in self.connections if connection.task}

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            if self._path is not None:
                self._path.unlink(missing_ok=True)

    def date_line(self) -> bytes:
        """The Date field, made once a second and only while there is somebody to read it."""
        now = int(self.clock.unix())
        if self._date[0] != now:
            self._date = (now, b"date: " + formatdate(now, usegmt=True).encode() + b"\r\n")
        return self._date[1]
