"""Pure: a request and a response as values, independent of who parses and who writes the bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Protocol

type HeaderList = list[tuple[bytes, bytes]]


class Headers:
    """Header fields in order of arrival. Names are lower-case bytes; look-ups take lower-case bytes."""

    __slots__ = ("_first", "raw")

    def __init__(self, raw: HeaderList) -> None:
        self.raw = raw
        #: of several fields of one name the first counts
        self._first = dict(reversed(raw))

    def get(self, name: bytes, default: str | None = None) -> str | None:
        """The first value under `name` as latin-1 text, or `default`."""
        value = self._first.get(name)
        return default if value is None else value.decode("latin-1")

    def get_raw(self, name: bytes) -> bytes | None:
        """The first value under `name` as it came."""
        return self._first.get(name)

    def get_all(self, name: bytes) -> list[str]:
        """All values under `name`, in order."""
        return [value.decode("latin-1") for key, value in self.raw if key == name]


class Body(Protocol):
    """The bytes of a request, read once."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The chunks as they arrive, with back-pressure."""
        ...

    async def read(self, limit: int) -> bytes:
        """All bytes. Raises `BodyTooLarge` as soon as more than `limit` arrive or are announced."""
        ...


class BodyTooLarge(Exception):
    """The body is larger than the reader allows."""


class ClientGone(Exception):
    """The client went away before its request was read or answered."""


class Request:
    """One HTTP request.

    method: upper-case. raw_path: still percent-encoded, without the query. query: the raw text after `?`.
    scheme and host: as the client addressed us ("http", "127.0.0.1:21000").
    """

    __slots__ = ("body", "client_host", "gone", "headers", "host", "method", "query", "raw_path", "scheme")

    def __init__(
        self,
        method: str,
        raw_path: str,
        query: str,
        headers: Headers,
        body: Body,
        *,
        scheme: str = "http",
        host: str = "",
        client_host: str = "",
        gone: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.method = method
        self.raw_path = raw_path
        self.query = query
        self.headers = headers
        self.body = body
        self.scheme = scheme
        self.host = host
        self.client_host = client_host
        #: resolves when the client has closed its connection; None when nobody can know
        self.gone = gone


class Response:
    """One HTTP answer. The body is bytes, or an iterator of chunks when it is streamed.

    reason: the phrase behind the status, where it is not the usual one.
    """

    __slots__ = ("body", "headers", "reason", "status")

    def __init__(
        self,
        status: int,
        headers: Iterable[tuple[bytes, bytes]] = (),
        body: bytes | AsyncIterator[bytes] = b"",
        reason: bytes | None = None,
    ) -> None:
        self.status = status
        self.reason = reason
        self.headers: HeaderList = list(headers)
        self.body = body


class Talk(Protocol):
    """What goes on over a connection that has left HTTP. It writes by what it was given at its start."""

    def receive(self, data: bytes) -> None:
        """Bytes of the client."""
        ...


class Switch(Response):
    """Status 101: from now on the connection speaks another protocol.

    begin: given a way to write and one to close, what takes the client's bytes from here on.
    """

    __slots__ = ("begin",)

    def __init__(
        self,
        headers: Iterable[tuple[bytes, bytes]],
        begin: Callable[[Callable[[bytes], None], Callable[[], None]], Talk],
    ) -> None:
        super().__init__(101, headers)
        self.begin = begin


type Handle = Callable[[Request], Awaitable[Response]]
"""What a server drives: one request in, one response out. It never raises for a bad request."""
