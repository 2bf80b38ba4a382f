"""How a connection's bytes reach a server: a Unix socket, or TCP with or without TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import PurePath
from typing import Protocol, cast, override

from toft.pg.sqlstate import Unreachable
from toft.pg.wire import SSL_REQUEST

type ProtocolFactory = Callable[[], asyncio.Protocol]


class Dialer(Protocol):
    """Opens transports to one server. Raises `OSError` or `Unreachable`."""

    async def dial(self, factory: ProtocolFactory) -> None:
        """Open a transport for the protocol, encrypted if that is this dialer's way."""
        ...

    async def dial_plain(self, factory: ProtocolFactory) -> None:
        """Open an unencrypted transport (a CancelRequest needs no more)."""
        ...


class UnixDialer:
    """Through a socket file, like `…/.s.PGSQL.5432`."""

    def __init__(self, path: str | PurePath) -> None:
        self._path = str(path)

    @override
    def __str__(self) -> str:
        return self._path

    async def dial(self, factory: ProtocolFactory) -> None:
        await asyncio.get_running_loop().create_unix_connection(factory, self._path)

    dial_plain = dial


class TcpDialer:
    """To a host and port. With `tls` the connection is encrypted before anything is said."""

    def __init__(
        self, host: str, port: int, tls: ssl.SSLContext | None = None, *, is_tls_required: bool = True
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._is_tls_required = is_tls_required

    @override
    def __str__(self) -> str:
        return f"{self._host}:{self._port}"

    async def dial_plain(self, factory: ProtocolFactory) -> None:
        await asyncio.get_running_loop().create_connection(factory, self._host, self._port)

    async def dial(self, factory: ProtocolFactory) -> None:
        if self._tls is None:
            return await self.dial_plain(factory)
        loop = asyncio.get_running_loop()
        asking = _TlsQuestion(loop.create_future())
        transport, _ = await loop.create_connection(lambda: asking, self._host, self._port)
        try:
            transport.write(SSL_REQUEST)
            answer = await asking.answer
            if answer == b"S":
                protocol = factory()
                encrypted = await loop.start_tls(transport, protocol, self._tls, server_hostname=self._host)
                protocol.connection_made(cast(asyncio.BaseTransport, encrypted))
            elif answer == b"N" and not self._is_tls_required:
                protocol = factory()
                transport.set_protocol(protocol)
                protocol.connection_made(transport)
            else:
                raise Unreachable(f"{self} does not speak TLS")
        except BaseException:
            transport.abort()
            raise
        return None


class _TlsQuestion(asyncio.Protocol):
    """Waits for the one byte that answers SSLRequest.

    More than one byte is refused: it would have been slipped in before encryption began.
    """

    def __init__(self, answer: asyncio.Future[bytes]) -> None:
        self.answer = answer

    @override
    def data_received(self, data: bytes) -> None:
        if not self.answer.done():
            self.answer.set_result(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_exception(exc or ConnectionResetError("closed before TLS began"))
