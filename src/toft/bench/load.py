"""A load generator as a process of its own: `python -m toft.bench.load PORT CONNECTIONS SECONDS`.

The raw request comes on stdin, one JSON object goes to stdout. Each connection sends the next request when
the answer to the last is complete.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import cast, override

import msgspec
import uvloop

from toft.bench.measure import percentile


class Load(msgspec.Struct, frozen=True):
    """Answers per second, and how long each took in milliseconds. errors: answers other than 2xx."""

    rps: float
    p50: float
    p99: float
    errors: int


class _Client(asyncio.Protocol):
    """One connection. An answer is complete when the bytes that its Content-Length tells have arrived."""

    def __init__(self, request: bytes, times: list[float]) -> None:
        self._request = request
        self._times = times
        self._buffer = b""
        self._began = 0.0
        self.errors = 0
        self.is_over = False
        #: the first request makes plans and opens connections; it does not count
        self.warm = asyncio.Event()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._send()

    def _send(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._request)

    @override
    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        end = buffer.find(b"\r\n\r\n")
        if end < 0 or len(buffer) < end + 4 + _content_length(buffer[:end]):
            self._buffer = buffer
            return
        self._buffer = b""
        self._times.append(time.perf_counter() - self._began)
        self.warm.set()
        if buffer[9:10] != b"2":
            self.errors += 1
        if not self.is_over:
            self._send()


def _content_length(head: bytes) -> int:
    lowered = head.lower()
    at = lowered.find(b"content-length:")
    return int(lowered[at + 15 :].split(b"\r", 1)[0]) if at >= 0 else 0


async def generate(port: int, connections: int, seconds: float, request: bytes) -> Load:
    """Keep `connections` busy for so long. Raises OSError when nobody listens."""
    loop = asyncio.get_running_loop()
    times: list[float] = []
    clients = [_Client(request, times) for _ in range(connections)]
    for client in clients:
        await loop.create_connection(lambda client=client: client, "127.0.0.1", port)
    await asyncio.gather(*(client.warm.wait() for client in clients))
    times.clear()
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    took = time.perf_counter() - began
    for client in clients:
        client.is_over = True
    milliseconds = [one * 1e3 for one in times]
    return Load(
        rps=len(times) / took,
        p50=percentile(milliseconds, 0.5),
        p99=percentile(milliseconds, 0.99),
        errors=sum(client.errors for client in clients),
    )


def main() -> None:
    """Read the request, load the server, print what was seen."""
    port, connections, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    load = uvloop.run(generate(port, connections, seconds, sys.stdin.buffer.read()))
    sys.stdout.buffer.write(msgspec.json.encode(load) + b"\n")


if __name__ == "__main__":
    main()
