"""The HTTP server over real sockets: bodies both ways, clients that leave, and requests that are none."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from toft.http import connection
from toft.http.connection import MAX_HEAD_BYTES
from toft.http.message import BodyTooLarge, ClientGone, Handle, Request, Response
from toft.http.server import Listener, listen

type Serve = Callable[[Handle], Awaitable[Listener]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts listeners and closes them afterwards."""
    listeners: list[Listener] = []

    async def start(handle: Handle) -> Listener:
        listeners.append(await listen(handle))
        return listeners[-1]

    yield start
    for listener in listeners:
        await listener.close()
    await asyncio.sleep(0)


class Client:
    """A bare client: what it writes is what is sent."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, raw: bytes) -> None:
        self.writer.write(raw)

    async def answer(self, *, is_head: bool = False) -> tuple[int, dict[str, str], bytes]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = dict(line.split(": ", 1) for line in head[1:] if line)
        status = int(head[0].split()[1])
        if is_head or status in (100, 204, 304):
            return status, fields, b""
        if fields.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await self.reader.readuntil(b"\n"), 16):
                body += await self.reader.readexactly(size)
                await self.reader.readline()
            await self.reader.readline()
            return status, fields, body
        return status, fields, await self.reader.readexactly(int(fields["content-length"]))


@asynccontextmanager
async def talk(listener: Listener | Path) -> AsyncIterator[Client]:
    async with asyncio.timeout(20):
        if isinstance(listener, Path):
            reader, writer = await asyncio.open_unix_connection(str(listener))
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        try:
            yield Client(reader, writer)
        finally:
            writer.transport.abort()
            await asyncio.sleep(0)


GET = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"


async def echo(request: Request) -> Response:
    """Tells what it was asked."""
    body = await request.body.read(10_000_000)
    seen = (
        f"{request.method} {request.raw_path}?{request.query} {request.host} {request.client_host} ".encode()
    )
    return Response(200, [(b"X-Seen", b"yes")], seen + body)


async def test_request_and_response(serve: Serve) -> None:
    """A request arrives as it was sent; the response leaves with length and date."""
    async with talk(await serve(echo)) as client:
        client.send(b"POST /a%2Fb?q=%41&r HTTP/1.1\r\nHost: me:1\r\ncontent-length: 3\r\n\r\nabc")
        status, fields, body = await client.answer()
        assert (status, body) == (200, b"POST /a%2Fb?q=%41&r me:1 127.0.0.1 abc")
        assert fields["content-length"] == str(len(body))
        assert fields["X-Seen"] == "yes"
        assert fields["date"].endswith("GMT")
        client.send(GET)  # the connection is kept
        assert (await client.answer())[2] == b"GET /? here 127.0.0.1 "


async def test_pipelined_requests(serve: Serve) -> None:
    """Requests that are sent at once are answered in order."""

    async def slow_first(request: Request) -> Response:
        if request.raw_path == "/0":
            await asyncio.sleep(0.01)
        return Response(200, [], request.raw_path.encode())

    async with talk(await serve(slow_first)) as client:
        client.send(b"".join(b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % number for number in range(20)))
        answers = [(await client.answer())[2] for _ in range(20)]
        assert answers == [b"/%d" % number for number in range(20)]


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_streamed_request(serve: Serve, is_chunked: bool) -> None:
    """A large body is read in pieces; a slow reader slows the sender down instead of filling memory."""
    size, seen = 8_000_000, 0
    may_read = asyncio.Event()

    async def count(request: Request) -> Response:
        nonlocal seen
        await may_read.wait()
        async for chunk in request.body:
            assert len(chunk) < 1_000_000
            seen += len(chunk)
        return Response(200, [], str(seen).encode())

    async with talk(await serve(count)) as client:
        kind = b"transfer-encoding: chunked" if is_chunked else b"content-length: %d" % size
        client.send(b"PUT / HTTP/1.1\r\nhost: x\r\n" + kind + b"\r\n\r\n")
        piece = b"z" * 500_000
        for _ in range(size // len(piece)):
            client.send(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
        client.send(b"0\r\n\r\n" if is_chunked else b"")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.writer.drain(), 0.05)
        may_read.set()
        assert (await client.answer())[2] == str(size).encode()


@pytest.mark.parametrize("is_announced", [True, False])
async def test_body_too_large(serve: Serve, is_announced: bool) -> None:
    """A body over its limit is refused as soon as that is known, and the connection stays in step."""

    async def small(request: Request) -> Response:
        await request.body.read(10)
        return Response(204)

    async with talk(await serve(small)) as client:
        kind = b"content-length: 20" if is_announced else b"transfer-encoding: chunked"
        body = b"x" * 20 if is_announced else b"14\r\n" + b"x" * 20 + b"\r\n0\r\n\r\n"
        client.send(b"POST / HTTP/1.1\r\nhost: x\r\n" + kind + b"\r\n\r\n" + body)
        status, _, text = await client.answer()
        assert (status, text) == (413, b'{"message":"The request body is too large"}')
        client.send(GET)
        assert (await client.answer())[0] == 204


async def test_unread_body(serve: Serve) -> None:
    """A body that nobody reads does not disturb the next request."""

    async def ignore(request: Request) -> Response:
        return Response(200, [], request.method.encode())

    async with talk(await serve(ignore)) as client:
        client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3000000\r\n\r\n" + b"G" * 3_000_000 + GET)
        assert [(await client.answer())[2] for _ in range(2)] == [b"POST", b"GET"]


async def test_expect_continue(serve: Serve) -> None:
    """A client that asks first is told to go on when the body is wanted, and hung up on when it is not."""

    async def maybe(request: Request) -> Response:
        return await echo(request) if request.raw_path == "/yes" else Response(403, [], b"no")

    listener = await serve(maybe)
    asking = b" HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
    async with talk(listener) as client:
        client.send(b"POST /yes" + asking)
        assert (await client.answer())[0] == 100
        client.send(b"hi")
        assert (await client.answer())[2].endswith(b"hi")
        client.send(b"POST /no" + asking)
        status, fields, _ = await client.answer()
        assert (status, fields["connection"]) == (403, "close")
        assert await client.reader.read() == b""


async def test_streamed_response(serve: Serve) -> None:
    """A stream leaves chunked, or with the length that it announces; HEAD gets the fields only."""
    closed: list[str] = []

    async def pieces(name: str) -> AsyncGenerator[bytes]:
        try:
            for _ in range(3):
                yield b"ab"
        finally:
            closed.append(name)

    async def stream(request: Request) -> Response:
        fields = [(b"content-length", b"6")] if request.raw_path == "/sized" else []
        return Response(200, fields, pieces(request.raw_path))

    async with talk(await serve(stream)) as client:
        for path, field in (("/chunked", "transfer-encoding"), ("/sized", "content-length")):
            client.send(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            status, fields, body = await client.answer()
            assert (status, body) == (200, b"ababab")
            assert field in fields
        client.send(b"HEAD /sized HTTP/1.1\r\nhost: x\r\n\r\n" + b"GET /chunked HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await client.answer(is_head=True))[1]["content-length"] == "6"
        assert (await client.answer())[2] == b"ababab"
    assert closed == ["/chunked", "/sized", "/chunked"]


async def test_slow_reader(serve: Serve) -> None:
    """A client that does not read stops the stream; what was made is bounded."""
    made = 0

    async def endless() -> AsyncGenerator[bytes]:
        nonlocal made
        while True:
            made += 1
            yield b"x" * 100_000

    async def stream(request: Request) -> Response:
        return Response(200, [], endless())

    listener = await serve(stream)
    async with talk(listener) as client:
        client.send(GET)
        await client.reader.readuntil(b"\r\n\r\n")
        before = -1
        while made != before:
            before = made
            await asyncio.sleep(0.05)
        assert made < 200
    async with asyncio.timeout(10):
        while listener.in_flight:
            await asyncio.sleep(0)


async def test_response_without_body(serve: Serve) -> None:
    """204 and 304 have no body and no length; HEAD has no body."""

    async def bare(request: Request) -> Response:
        return Response(int(request.raw_path[1:]), [], b"ignored" if request.method == "HEAD" else b"")

    async with talk(await serve(bare)) as client:
        for line in (b"GET /204", b"GET /304", b"HEAD /200"):
            client.send(line + b" HTTP/1.1\r\nhost: x\r\n\r\n")
            _, fields, _ = await client.answer(is_head=True)
            assert "content-length" not in fields
            assert "transfer-encoding" not in fields


async def test_client_leaves_while_waiting(serve: Serve) -> None:
    """When the client goes, its task is cancelled and `gone` resolves."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(request: Request) -> Response:
        assert request.gone is not None
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await request.gone()
            ended.set()
            raise
        return Response(200)

    async with talk(await serve(wait)) as client:
        client.send(GET)
        await begun.wait()
        client.writer.close()
        await ended.wait()


async def test_client_leaves_while_streaming(serve: Serve) -> None:
    """When the client goes, a stream that waits for its next piece is closed."""
    ended = asyncio.Event()

    async def pieces() -> AsyncGenerator[bytes]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def stream(request: Request) -> Response:
        return Response(200, [], pieces())

    async with talk(await serve(stream)) as client:
        client.send(GET)
        await client.reader.readuntil(b"first")
        client.writer.close()
        await ended.wait()


async def test_client_leaves_in_mid_body(serve: Serve) -> None:
    """A body that breaks off never looks complete."""
    ended: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

    async def read(request: Request) -> Response:
        try:
            await request.body.read(1000)
        except BaseException as error:
            ended.set_result(error)
            raise
        ended.set_result(None)
        return Response(200)

    async with talk(await serve(read)) as client:
        client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nabc")
        await asyncio.sleep(0.01)
        client.writer.close()
        assert isinstance(await ended, asyncio.CancelledError | ClientGone)


async def test_unexpected_failure(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """A failure of a handler is a bare 500; the story is in the log only."""

    async def fail(request: Request) -> Response:
        raise KeyError("secret detail")

    with caplog.at_level(logging.ERROR, "toft.http"):
        async with talk(await serve(fail)) as client:
            client.send(GET)
            status, fields, body = await client.answer()
            assert (status, fields["content-type"]) == (500, "application/json")
            assert b"secret" not in body
            client.send(GET)
            assert (await client.answer())[0] == 500
    assert "secret detail" in caplog.text


async def test_failure_within_stream(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """A stream that fails breaks off, so that no client takes a part for the whole."""

    async def pieces() -> AsyncGenerator[bytes]:
        yield b"part"
        raise RuntimeError("broken")

    async def stream(request: Request) -> Response:
        return Response(200, [], pieces())

    async with talk(await serve(stream)) as client:
        client.send(GET)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await client.answer()
    assert "broken" in caplog.text


@pytest.mark.parametrize("field", [(b"x", b"a\r\nset-cookie: b"), (b"x\r\n\r\n<b>", b"a"), (b"x", b"a\nb")])
async def test_no_header_injection(
    serve: Serve, caplog: pytest.LogCaptureFixture, field: tuple[bytes, bytes]
) -> None:
    """A field with a line break in it never reaches the client."""

    async def inject(request: Request) -> Response:
        return Response(200, [field], b"body")

    async with talk(await serve(inject)) as client:
        client.send(GET)
        status, fields, _ = await client.answer()
        assert status == 500
        assert "set-cookie" not in fields


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01", 400),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * (MAX_HEAD_BYTES + 1) + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * (MAX_HEAD_BYTES + 1) + b" HTTP/1.1\r\n\r\n", 431),
        (b"".join([b"GET / HTTP/1.1\r\n", *(b"h%d: v\r\n" % i for i in range(30000)), b"\r\n"]), 431),
        (b"POST / HTTP/1.1\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd", 400),
        (b"POST / HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ],
)
async def test_not_a_request(serve: Serve, raw: bytes, status: int) -> None:
    """What is no request, ambiguous, or too long a head is refused and ends the connection."""
    async with talk(await serve(echo)) as client:
        client.send(raw)
        got, fields, _ = await client.answer()
        assert (got, fields["connection"]) == (status, "close")


async def test_upgrade_is_an_ordinary_request(serve: Serve) -> None:
    """A WebSocket's opening gets the handler's answer; nobody speaks WebSocket here."""
    async with talk(await serve(echo)) as client:
        client.send(b"GET /ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
        assert (await client.answer())[0] == 200


@pytest.mark.parametrize("raw", [b"", b"GE", b"GET / HTTP/1.1\r\nx:"])
async def test_head_that_does_not_come(serve: Serve, monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    """A client that does not finish the head of its request is hung up on after a while."""
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.05)
    async with talk(await serve(echo)) as client:
        client.send(raw)
        assert await client.reader.read() == b""


async def test_http_1_0(serve: Serve) -> None:
    """An old client gets its answer and the end of the connection."""
    async with talk(await serve(echo)) as client:
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        assert (await client.answer())[0] == 200
        assert await client.reader.read() == b""


async def test_unix_socket(tmp_path: Path) -> None:
    """A Unix socket has the asked mode, replaces a stale file, and is gone after close."""
    path = tmp_path / "s"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    listener = await listen(echo, path=path, mode=0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    async with talk(path) as client:
        client.send(GET)
        assert (await client.answer())[2] == b"GET /? here  "
    await listener.close()
    assert not path.exists()
    assert listener.port == 0


async def test_bound_socket_and_taken_port() -> None:
    """A socket that is bound already is served; a second listener on its port is refused."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", 0))
    listener = await listen(echo, sock=bound)
    async with talk(listener) as client:
        client.send(GET)
        assert (await client.answer())[0] == 200
    with pytest.raises(OSError) as taken:
        await listen(echo, port=listener.port)
    assert taken.value.errno == errno.EADDRINUSE
    port = listener.port
    await listener.close()
    again = await listen(echo, port=port)  # at once, in spite of connections in TIME_WAIT
    await again.close()


async def test_close_cuts_off(serve: Serve) -> None:
    """Closing without grace ends idle connections and cancels what runs."""
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def wait(request: Request) -> Response:
        if request.raw_path == "/":
            return Response(200)
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return Response(200)

    listener = await serve(wait)
    async with talk(listener) as idle, talk(listener) as busy:
        idle.send(GET)
        await idle.answer()
        busy.send(b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n")
        await begun.wait()
        await listener.close()
        assert cancelled.is_set()
        assert await idle.reader.read() == b""
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await busy.answer()


async def test_close_with_grace(serve: Serve) -> None:
    """With grace, requests in flight are answered and then the connection ends."""
    begun, go = asyncio.Event(), asyncio.Event()

    async def wait(request: Request) -> Response:
        begun.set()
        await go.wait()
        return Response(200, [], b"done")

    listener = await serve(wait)
    async with talk(listener) as client:
        client.send(GET)
        await begun.wait()
        closing = asyncio.get_running_loop().create_task(listener.close(grace_seconds=10))
        await asyncio.sleep(0)
        go.set()
        status, fields, body = await client.answer()
        assert (status, fields["connection"], body) == (200, "close", b"done")
        await closing


async def test_limit_is_reported(serve: Serve) -> None:
    """A handler may turn `BodyTooLarge` into its own words."""

    async def own_words(request: Request) -> Response:
        try:
            await request.body.read(1)
        except BodyTooLarge:
            return Response(400, [], b"mine")
        return Response(200)

    async with talk(await serve(own_words)) as client:
        client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nab")
        assert (await client.answer())[2] == b"mine"
