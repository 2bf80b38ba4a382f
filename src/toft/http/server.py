"""The one HTTP server: uvicorn's connection class, driven per listener, around a plain `Handle`.

uvicorn parses, pauses and resumes (httptools); here a request becomes a `Request`, and a `Response` becomes
bytes. A listener costs about as much as its socket, so every backend has its own, and the socket says which
backend is meant. When a client goes away, the task that works for it is cancelled, wherever it is. A failure
of a handler is logged and answered as a bare 500.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from email.utils import formatdate
from pathlib import Path
from typing import Final, cast, override

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from toft.http.message import BodyTooLarge, ClientGone, Handle, HeaderList, Headers, Request, Response
from toft.http.sockets import BACKLOG, bind_path, bind_port
from toft.world import Clock, SystemClock

#: Request line and header fields together.
MAX_HEAD_BYTES: Final = 128 * 1024
#: How long the head of a request may take to arrive.
HEAD_SECONDS: Final = 30.0
#: How long a connection may stay open between requests.
KEEP_ALIVE_SECONDS: Final = 75

_log = logging.getLogger("toft.http")
#: uvicorn's own lines are of no use here: it reports what clients do wrong
_silence = logging.getLogger("toft.http.uvicorn")
_silence.setLevel(logging.CRITICAL)


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
        self.state = ServerState()
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
        return len(self.state.tasks)

    async def start(self) -> None:
        self._server = await self.loop.create_server(
            lambda: _Connection(self), sock=self._sock, backlog=BACKLOG
        )

    async def close(self, grace_seconds: float = 0.0) -> None:
        """Stop listening and close idle connections; requests in flight have `grace_seconds` to end."""
        self._stop_listening()
        for connection in tuple(self.state.connections):
            connection.shutdown()
        if grace_seconds and self.state.tasks:
            await asyncio.wait(tuple(self.state.tasks), timeout=grace_seconds)
        self.cut()
        await self.wait_quiet()

    def cut(self) -> None:
        """Stop listening, close every connection and cancel what runs, at once."""
        self._stop_listening()
        for connection in tuple(self.state.connections):
            connection.transport.abort()
        for task in tuple(self.state.tasks):
            task.cancel()

    async def wait_quiet(self) -> None:
        """Wait until no request is being answered."""
        if self.state.tasks:
            await asyncio.wait(tuple(self.state.tasks))

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


def _make_config() -> Config:
    config = Config(
        _never_called,
        http=HttpToolsProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    config.load()
    return config


async def _never_called(_scope: object, _receive: object, _send: object) -> None:
    """uvicorn wants an application; `_Connection` starts ours itself."""


_config: Final = _make_config()


class _Connection(HttpToolsProtocol):
    """One client's connection: its requests are answered one after the other."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(_config, listener.state, {}, listener.loop)
        self.logger = _silence
        self.access_log = False
        self._listener = listener
        self._client_host = ""
        self._task: asyncio.Task[None] | None = None
        self._gone: asyncio.Future[None] | None = None
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    # Reading.

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  (uvicorn's own narrowing)
        super().connection_made(transport)
        self._client_host = self.client[0] if self.client else ""
        self.timeout_keep_alive_task = self.loop.call_later(HEAD_SECONDS, self.timeout_keep_alive_handler)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._stop_head_timer()
        self.pipeline.clear()
        if self._task is not None:
            self._task.cancel()
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if (cycle is None or cycle.response_complete) and not self.transport.is_closing():
            # A request has begun to arrive, or the rest of one that is answered already.
            self._head_timer = self._head_timer or self.loop.call_later(
                HEAD_SECONDS, self.timeout_keep_alive_handler
            )

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0

    @override
    def on_url(self, url: bytes) -> None:
        self.url += url
        self._count_head(len(url))

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))
        self._count_head(len(name) + len(value))

    @override
    def on_headers_complete(self) -> None:
        self._stop_head_timer()
        super().on_headers_complete()

    @override
    def send_400_response(self, msg: str) -> None:
        """What is not HTTP, or too much of it, is answered once; then the connection ends."""
        if self._head_bytes > MAX_HEAD_BYTES:
            status, text = 431, b'{"message":"Request header fields too large"}'
        else:
            status, text = 400, b'{"message":"Bad request"}'
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None or cycle.response_complete:
            head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            self.transport.write(STATUS_LINE[status] + head % len(text) + text)
        self.transport.close()

    def _count_head(self, count: int) -> None:
        self._head_bytes += count
        if self._head_bytes > MAX_HEAD_BYTES:
            raise OverflowError("the request's head is too large")

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    # Answering.

    @override
    def _start_asgi_task(self, cycle: RequestResponseCycle, app: object) -> None:
        task = self.loop.create_task(self._serve(cycle))
        self._task = task
        self.tasks.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if self._task is task:
            self._task = None

    async def _serve(self, cycle: RequestResponseCycle) -> None:
        try:
            response = await self._respond(cycle)
            if isinstance(response.body, bytes):
                if cycle.flow.write_paused:
                    await cycle.flow.drain()
                self._write(cycle, response.status, response.headers, response.body, response.reason)
            else:
                await self._stream(cycle, response, response.body)
        except (asyncio.CancelledError, ClientGone):
            # The client has gone or the listener closes: in either case nobody wants to hear more.
            self.transport.abort()
        except Exception:
            _log.exception("a response could not be sent")
            self.transport.abort()

    async def _respond(self, cycle: RequestResponseCycle) -> Response:
        scope = cycle.scope
        headers = Headers(cast(HeaderList, scope["headers"]))
        request = Request(
            scope["method"],
            scope["raw_path"].decode("latin-1"),
            scope["query_string"].decode("latin-1"),
            headers,
            _Body(cycle, headers),
            host=headers.get(b"host") or "",
            client_host=self._client_host,
            gone=self._wait_gone,
        )
        try:
            return await self._listener.handle(request)
        except BodyTooLarge:
            return _say(413, "The request body is too large")
        except ClientGone:
            raise
        except Exception:
            _log.exception("unexpected failure while answering %s %s", request.method, request.raw_path)
            return _say(500, "An unexpected error occurred")

    def _write(
        self,
        cycle: RequestResponseCycle,
        status: int,
        headers: HeaderList,
        body: bytes,
        reason: bytes | None = None,
    ) -> None:
        """A whole response in one piece."""
        if cycle.disconnected:
            return
        line = STATUS_LINE.get(status) if reason is None else None
        pieces = [line or b"HTTP/1.1 %d %b\r\n" % (status, reason or b""), self._listener.date_line()]
        lines = len(headers) + 3
        is_sized = False
        for name, value in headers:
            pieces += (name, b": ", value, b"\r\n")
            if len(name) == 14 and name.lower() == b"content-length":
                is_sized = True
        is_bare = status == 204 or status == 304 or cycle.scope["method"] == "HEAD"
        if not is_sized and not is_bare:
            pieces.append(b"content-length: %d\r\n" % len(body))
            lines += 1
        if cycle.waiting_for_100_continue:
            # The client holds a body back, or sends it after all: what follows cannot be told from a request.
            cycle.keep_alive = False
        if not cycle.keep_alive:
            pieces.append(b"connection: close\r\n")
            lines += 1
        pieces.append(b"\r\n")
        head = b"".join(pieces)
        if head.count(b"\n") != lines or head.count(b"\r") != lines or 0 in head:
            _log.error("a response has a header field with a line break in it")
            self._write(cycle, 500, [], b"")
            return
        cycle.response_started = cycle.response_complete = True
        self.transport.write(head if is_bare else head + body)
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    async def _stream(
        self, cycle: RequestResponseCycle, response: Response, body: AsyncIterator[bytes]
    ) -> None:
        if cycle.waiting_for_100_continue:
            cycle.keep_alive = False
        date = self._listener.date_line()[6:-2]
        try:
            await cycle.send(
                {
                    "type": "http.response.start",
                    "status": response.status,
                    "headers": [*response.headers, (b"date", date)],
                }
            )
            if cycle.scope["method"] != "HEAD":
                async for chunk in body:
                    await cycle.send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            close = cast("Callable[[], Awaitable[None]] | None", getattr(body, "aclose", None))
            if close is not None:
                await close()
        await cycle.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _wait_gone(self) -> None:
        if self._gone is None:
            self._gone = self.loop.create_future()
        if not self.transport.is_closing():
            await asyncio.shield(self._gone)


class _Body:
    """The body of one request, as uvicorn collects it: it stops reading from the client above 64 kB."""

    __slots__ = ("_cycle", "_headers")

    def __init__(self, cycle: RequestResponseCycle, headers: Headers) -> None:
        self._cycle = cycle
        self._headers = headers

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        cycle = self._cycle
        while True:
            if cycle.body:
                chunk = bytes(cycle.body)
                cycle.body = bytearray()
                yield chunk
            elif not cycle.more_body:
                return
            elif cycle.disconnected or cycle.response_complete:
                raise ClientGone
            else:
                await self._wait_for_more()

    async def read(self, limit: int) -> bytes:
        announced = self._headers.get(b"content-length") or ""
        if announced.isdecimal() and int(announced) > limit:
            raise BodyTooLarge
        chunks: list[bytes] = []
        size = 0
        async for chunk in self:
            size += len(chunk)
            if size > limit:
                raise BodyTooLarge
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _wait_for_more(self) -> None:
        cycle = self._cycle
        if cycle.waiting_for_100_continue:
            cycle.waiting_for_100_continue = False
            cycle.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        cycle.flow.resume_reading()
        await cycle.message_event.wait()
        cycle.message_event.clear()


def _say(status: int, text: str) -> Response:
    return Response(status, [(b"content-type", b"application/json")], b'{"message":"%b"}' % text.encode())
