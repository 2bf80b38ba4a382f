"""The floor of HTTP: `python -m toft.bench.bare PORT` answers every request with the same few bytes."""

from __future__ import annotations

import asyncio
import sys
from typing import cast, override

import httptools
import uvloop

_BODY = b'[{"id":77,"name":"item 77","price":115.5}]'
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(_BODY),
    _BODY,
)


class _Constant(asyncio.Protocol):
    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._parser = httptools.HttpRequestParser(self)

    @override
    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._transport.write(_ANSWER)


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Constant, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
