"""One client's connection: its requests are answered one after the other.

httptools parses. A request is given to the handler as soon as its head is there, at once and within the
call that received it. When the client goes away, the task that works for it is cancelled, wherever it is. A
failure of a handler is logged and answered as a bare 500.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Final, Protocol, cast, override

import httptools

from toft.http.exchange import Exchange
from toft.http.head import LineBreak, length_of, render_head
from toft.http.message import (
    BodyTooLarge,
    ClientGone,
    Handle,
    HeaderList,
    Headers,
    Request,
    Response,
    Switch,
    Talk,
)

#: Request line and header fields together.
MAX_HEAD_BYTES: Final = 128 * 1024
#: How long the head of a request may take to arrive.
HEAD_SECONDS: Final = 30.0
#: How long a connection may stay open between requests.
KEEP_ALIVE_SECONDS: Final = 75.0

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE: Final = b"connection: close\r\n"
_WITHOUT_BODY: Final = (101, 204, 304)
_JSON: Final = (b"content-type", b"application/json")

_log = logging.getLogger("toft.http")


class Host(Protocol):
    """What a connection must know of its listener."""

    handle: Handle
    connections: set[Connection]
    #: work that goes on after its connection has gone
    ending: set[asyncio.Task[None]]

    def date_line(self) -> bytes: ...


class Connection(asyncio.Protocol):
    """See the module."""

    def __init__(self, host: Host, loop: asyncio.AbstractEventLoop) -> None:
        self._host = host
        self._loop = loop
        self._parser = httptools.HttpRequestParser(self)
        # What follows a request that ends the connection is not worth an error.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._client_host = ""
        # The request that arrives.
        self._url = b""
        self._fields: HeaderList = []
        self._head_bytes = 0
        self._is_in_head = False
        #: its head is here, but not all of its body
        self._arriving: Exchange | None = None
        # The request that is answered, and those that came after it.
        self._current: Exchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._queue: deque[Exchange] = deque()
        self._is_ending = False
        #: takes over from HTTP, once a response has switched to it
        self._talk: Talk | None = None
        # The transport.
        self._is_reading = True
        self._drained: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] | None = None
        self._head_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._idle_until = 0.0

    @property
    def task(self) -> asyncio.Task[None] | None:
        """What answers a request."""
        return self._task

    def shut_down(self) -> None:
        """Close when the request in flight is answered, or now."""
        self._is_ending = True
        if self._current is None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once and cancel what runs."""
        self._transport.abort()
        if self._task is not None:
            self._task.cancel()

    # What the event loop calls.

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._host.connections.add(self)
        peer = cast("tuple[str, int] | str | None", transport.get_extra_info("peername"))
        self._client_host = peer[0] if isinstance(peer, tuple) else ""
        self._head_timer = self._loop.call_later(HEAD_SECONDS, self._end_slow_head)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._host.connections.discard(self)
        self._stop_head_timer()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._queue.clear()
        # Parser and connection hold each other; so both go at once.
        self._parser = cast("httptools.HttpRequestParser", None)
        self.resume_writing()
        if self._current is not None:
            self._current.is_over = True
            self._current.wake()
        if self._task is not None:
            self._task.cancel()
            self._host.ending.add(self._task)
            self._task.add_done_callback(self._host.ending.discard)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    @override
    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        if self._talk is not None:
            self._talk.receive(data)
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # To us it is a request like any other, and so is what follows it.
            rest = data[cast("int", upgrade.args[0]) :]
            if rest:
                self.data_received(rest)
        except httptools.HttpParserError:
            self._refuse()
            return
        if self._current is None and self._queue:
            self._answer_next()
        if self._is_in_head or (self._arriving is not None and self._arriving.is_answered):
            # A head that came in part, or the rest of a request that is answered already.
            self._head_timer = self._head_timer or self._loop.call_later(HEAD_SECONDS, self._end_slow_head)

    @override
    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    @override
    def resume_writing(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._url = b""
        self._fields = []
        self._head_bytes = 0
        self._is_in_head = True

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name.lower(), value))
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MAX_HEAD_BYTES:
            raise OverflowError

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        if self._head_timer is not None:
            self._stop_head_timer()
        parser = self._parser
        path, query = _split_url(self._url)
        headers = Headers(self._fields)
        expected = headers.get_raw(b"expect")
        is_old = parser.get_http_version() == "1.0"
        self._arriving = exchange = Exchange(
            parser.get_method().decode(),
            path,
            query,
            headers,
            self._ask_for_more,
            is_old=is_old,
            is_kept_alive=not is_old and parser.should_keep_alive(),
            waits_for_continue=expected is not None and expected.lower() == b"100-continue",
        )
        if self._current is not None or self._queue:
            self._pause_reading()
        self._queue.append(exchange)

    def on_body(self, body: bytes) -> None:
        exchange = self._arriving
        if exchange is not None and not exchange.is_answered:
            exchange.add(body)
            if exchange.is_full:
                self._pause_reading()

    def on_message_complete(self) -> None:
        exchange, self._arriving = self._arriving, None
        if exchange is not None:
            exchange.is_complete = True
            exchange.wake()
            if exchange.is_answered:
                self._stop_head_timer()

    # Reading.

    def _count_head(self, count: int) -> None:
        self._head_bytes += count
        if self._head_bytes > MAX_HEAD_BYTES:
            raise OverflowError

    def _refuse(self) -> None:
        """What is not HTTP, or too much of it, is answered once; then the connection ends."""
        if self._current is None:
            is_large = self._head_bytes > MAX_HEAD_BYTES
            status = 431 if is_large else 400
            text = b'{"message":"%b"}' % (b"Request header fields too large" if is_large else b"Bad request")
            self._transport.write(
                render_head(status, None, [_JSON], _CLOSE, b"content-length: %d\r\n" % len(text)) + text
            )
        self._transport.close()

    def _pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if not self._is_reading and not self._transport.is_closing():
            self._is_reading = True
            self._transport.resume_reading()

    def _ask_for_more(self, exchange: Exchange) -> None:
        if exchange.waits_for_continue:
            exchange.waits_for_continue = False
            self._transport.write(_CONTINUE)
        self._resume_reading()

    def _end_slow_head(self) -> None:
        self._head_timer = None
        if self._current is None:
            self._transport.close()

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end_idleness(self) -> None:
        """One timer serves many requests: it looks again when the last one is long enough ago."""
        self._idle_timer = None
        if self._current is not None:
            return
        if self._loop.time() < self._idle_until:
            self._idle_timer = self._loop.call_at(self._idle_until, self._end_idleness)
        else:
            self._transport.close()

    # Answering.

    def _answer_next(self) -> None:
        if self._queue and self._current is None and not self._transport.is_closing():
            exchange = self._current = self._queue.popleft()
            task = asyncio.Task(self._serve(exchange), loop=self._loop, eager_start=True)
            self._task = None if task.done() else task

    async def _serve(self, exchange: Exchange) -> None:
        try:
            response = await self._respond(exchange)
            if isinstance(response.body, bytes):
                if self._drained is not None:
                    await self._drained
                self._write(exchange, response, response.body)
                if isinstance(response, Switch):
                    self._talk = response.begin(self._transport.write, self._transport.close)
                    self._current = None
                    return
            else:
                await self._stream(exchange, response, response.body)
            self._finish(exchange)
        except (asyncio.CancelledError, ClientGone):
            # The client has gone or the listener closes: in either case nobody wants to hear more.
            self._transport.abort()
        except Exception:
            _log.exception("a response could not be sent")
            self._transport.abort()
        finally:
            self._task = None

    async def _respond(self, exchange: Exchange) -> Response:
        headers = exchange.headers
        request = Request(
            exchange.method,
            exchange.path,
            exchange.query,
            headers,
            exchange,
            host=headers.get(b"host") or "",
            client_host=self._client_host,
            gone=self._wait_gone,
        )
        try:
            return await self._host.handle(request)
        except BodyTooLarge:
            return _say(413, b"The request body is too large")
        except ClientGone:
            raise
        except Exception:
            _log.exception("unexpected failure while answering %s %s", request.method, request.raw_path)
            return _say(500, b"An unexpected error occurred")

    def _write(self, exchange: Exchange, response: Response, body: bytes) -> None:
        """A whole response in one piece."""
        own = [self._host.date_line()]
        status = response.status
        is_bare = status in _WITHOUT_BODY or exchange.method == "HEAD"
        if not is_bare and length_of(response.headers) is None:
            own.append(b"content-length: %d\r\n" % len(body))
        if not self._is_kept_alive(exchange):
            own.append(_CLOSE)
        try:
            head = render_head(status, response.reason, response.headers, *own)
        except LineBreak:
            _log.error("a response has a header field with a line break in it")
            self._write(exchange, Response(500), b"")
            return
        self._transport.write(head if is_bare else head + body)

    async def _stream(self, exchange: Exchange, response: Response, body: AsyncIterator[bytes]) -> None:
        """A response in pieces, in chunks unless its length is told. One of another length is broken off."""
        announced = length_of(response.headers)
        is_bare = response.status in _WITHOUT_BODY or exchange.method == "HEAD"
        is_chunked = announced is None and not exchange.is_old and response.status not in _WITHOUT_BODY
        own = [self._host.date_line()]
        if is_chunked:
            own.append(b"transfer-encoding: chunked\r\n")
        if not self._is_kept_alive(exchange):
            own.append(_CLOSE)
        try:
            self._transport.write(render_head(response.status, response.reason, response.headers, *own))
            sent = 0
            async for chunk in _nothing() if is_bare else body:
                if self._drained is not None:
                    await self._drained
                if self._transport.is_closing():
                    raise ClientGone
                sent += len(chunk)
                if chunk:
                    self._transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if is_chunked else chunk)
            if not is_bare and announced is not None and sent != announced:
                raise ValueError(f"{sent} bytes were sent and {announced} announced")
            if is_chunked and not is_bare:
                self._transport.write(b"0\r\n\r\n")
        finally:
            close = cast("Callable[[], Awaitable[None]] | None", getattr(body, "aclose", None))
            if close is not None:
                await close()

    def _is_kept_alive(self, exchange: Exchange) -> bool:
        if exchange.waits_for_continue or self._is_ending:
            # The client holds a body back, or sends it after all: what follows cannot be told from a request.
            exchange.is_kept_alive = False
        return exchange.is_kept_alive

    def _finish(self, exchange: Exchange) -> None:
        """The response is written: on to the next request, or to the end."""
        exchange.is_answered = True
        self._current = None
        if not exchange.is_kept_alive or self._is_ending:
            self._transport.close()
            return
        if self._queue:
            # Not from here: requests that were sent at once must not stand on one another's shoulders.
            self._loop.call_soon(self._answer_next)
        else:
            self._idle_until = self._loop.time() + KEEP_ALIVE_SECONDS
            if self._idle_timer is None:
                self._idle_timer = self._loop.call_at(self._idle_until, self._end_idleness)
        if not self._is_reading and len(self._queue) < 2:
            self._resume_reading()

    async def _wait_gone(self) -> None:
        if self._gone is None:
            self._gone = self._loop.create_future()
        if not self._transport.is_closing():
            await asyncio.shield(self._gone)


def _split_url(url: bytes) -> tuple[str, str]:
    """Path and query of what stands in the request line. Raises ValueError when it is no URL."""
    if url.startswith(b"/") and b"#" not in url:
        path, _, query = url.partition(b"?")
    else:
        parsed = httptools.parse_url(url)
        path, query = parsed.path or b"/", parsed.query or b""
    return path.decode("ascii"), query.decode("latin-1")


async def _nothing() -> AsyncGenerator[bytes]:
    for chunk in ():
        yield chunk


def _say(status: int, text: bytes) -> Response:
    return Response(status, [_JSON], b'{"message":"%b"}' % text)
