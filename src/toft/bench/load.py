"""Load on an HTTP port: by wrk where it is installed, else by a generator of ours, which costs more CPU.

Both keep a number of connections busy; each sends its next request when the answer to the last is complete.
`{n}` in a path is another number each time. Ours is a process of its own: `python -m toft.bench.load PORT
CONNECTIONS SECONDS`, the raw request on stdin, one JSON object on stdout.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, cast, override

import msgspec
import uvloop

from toft import settings as options
from toft.bench.measure import percentile
from toft.bench.subjects import NUMBERS

WRK: Final = shutil.which("wrk")
_UNITS: Final = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3}


class Load(msgspec.Struct, frozen=True):
    """Answers a second and in all, and how long each took in milliseconds. errors: answers other than 2xx."""

    rps: float
    p50: float
    p99: float
    errors: int
    count: int


class Wanted(msgspec.Struct, frozen=True):
    """A request, to be sent again and again. paths: one after the other, if there are several."""

    method: str
    paths: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]
    body: bytes = b""


def put_load(wanted: Wanted, port: int, connections: int, seconds: float, folder: Path) -> Load:
    """Load a port for so long. Raises RuntimeError when anything but success was answered."""
    load = (
        _by_wrk(wanted, port, connections, seconds, folder)
        if WRK
        else _by_ours(wanted, port, connections, seconds)
    )
    if load.errors or not load.count:
        raise RuntimeError(f"{load.errors} of {load.count} requests failed")
    return load


def _by_wrk(wanted: Wanted, port: int, connections: int, seconds: float, folder: Path) -> Load:
    script = folder / "load.lua"
    headers = "".join(f"wrk.headers[{_lua(name)}] = {_lua(value)}\n" for name, value in wanted.fields)
    body = _lua(wanted.body.decode()) if wanted.body else "nil"
    script.write_text(
        f"wrk.method = {_lua(wanted.method)}\nwrk.body = {body}\n"
        f"{headers}local paths = {{{', '.join(map(_lua, wanted.paths))}}}\nlocal n = 0\n"
        f"request = function()\n  n = n % {NUMBERS} + 1\n"
        "  return wrk.format(nil, (string.gsub(paths[n % #paths + 1], '{n}', n)))\nend\n"
    )
    line = [
        WRK or "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{max(1, round(seconds))}",
        "--latency",
        "-s",
        str(script),
    ]
    line.append(f"http://127.0.0.1:{port}")
    said = subprocess.run(line, capture_output=True, check=True, text=True).stdout
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    sockets = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", said)
    errors = sum(int(text) for found in (failed, sockets) if found for text in found.groups())
    return Load(
        rps=float(_find(r"Requests/sec:\s+([\d.]+)", said)[0]),
        p50=_milliseconds(said, 50),
        p99=_milliseconds(said, 99),
        errors=errors,
        count=int(_find(r"(\d+) requests in", said)[0]),
    )


def _lua(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _find(pattern: str, said: str) -> tuple[str, ...]:
    found = re.search(pattern, said)
    if found is None:
        raise RuntimeError(f"wrk said: {said[-300:]}")
    return found.groups()


def _milliseconds(said: str, percent: int) -> float:
    number, unit = _find(rf"{percent}%\s+([\d.]+)(us|ms|s|m)", said)
    return float(number) * _UNITS[unit]


def _by_ours(wanted: Wanted, port: int, connections: int, seconds: float) -> Load:
    head = "".join(f"{name}: {value}\r\n" for name, value in (("host", "127.0.0.1"), *wanted.fields))
    if wanted.body:
        head += f"content-length: {len(wanted.body)}\r\n"
    requests = [
        f"{wanted.method} {path} HTTP/1.1\r\n{head}\r\n".encode() + wanted.body for path in wanted.paths
    ]
    line = [options.python(), "-m", "toft.bench.load", str(port), str(connections), str(seconds)]
    done = subprocess.run(line, input=msgspec.json.encode(requests), capture_output=True, check=True)
    return msgspec.json.decode(done.stdout, type=Load)


class _Client(asyncio.Protocol):
    """One connection. An answer is complete when the bytes that its Content-Length tells have arrived."""

    def __init__(self, requests: list[bytes], times: list[float], number: int) -> None:
        self._requests = requests
        self._times = times
        self._number = number
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
        number = self._number = self._number % NUMBERS + 1
        self._began = time.perf_counter()
        request = self._requests[number % len(self._requests)]
        self._transport.write(request.replace(b"{n}", b"%d" % number))

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


async def generate(port: int, connections: int, seconds: float, requests: list[bytes]) -> Load:
    """Keep `connections` busy for so long. Raises OSError when nobody listens."""
    loop = asyncio.get_running_loop()
    times: list[float] = []
    clients = [_Client(requests, times, number * 37) for number in range(connections)]
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
        count=len(times),
    )


def main() -> None:
    """Read the requests, load the server, print what was seen."""
    port, connections, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    requests = msgspec.json.decode(sys.stdin.buffer.read(), type=list[bytes])
    load = uvloop.run(generate(port, connections, seconds, requests))
    sys.stdout.buffer.write(msgspec.json.encode(load) + b"\n")


if __name__ == "__main__":
    main()
