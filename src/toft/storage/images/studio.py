"""Who runs painters: one process for all backends of a worker, started when needed, ended when nobody asks.

An image that makes it hang or die is refused, and the next one finds another painter.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections import OrderedDict
from typing import Final

import msgspec

from toft.host.limits import Limits
from toft.host.processes import kill_group, reap_when_gone, spawn
from toft.storage.images.orders import Order, Picture
from toft.storage.images.transformation import Transformation

#: larger files are not looked at
LARGEST_SOURCE_BYTES: Final = 25 * 1024 * 1024
#: how long one image may take, the start of the process included
MOST_SECONDS: Final = 30.0
IDLE_SECONDS: Final = 60.0
_MEMORY_BYTES: Final = 1024**3
#: pictures that are kept for the next request
_KEPT_BYTES: Final = 32 * 1024 * 1024


class NotRendered(Exception):
    """The image is none, damaged, too large, or took too long. The text may be empty."""


class Rendered(msgspec.Struct, frozen=True):
    """A picture: media type and bytes."""

    kind: str
    data: bytes


class Studio:
    """Renders images in a process of its own, one after the other."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._painter: _Painter | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._kept: OrderedDict[tuple[str, bytes], Rendered] = OrderedDict()
        self._kept_bytes = 0

    def find(self, version: str, wanted: Transformation, target: str) -> Rendered | None:
        """What was rendered before; a version never changes."""
        key = version, msgspec.json.encode((wanted, target))
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    async def render(self, version: str, data: bytes, wanted: Transformation, target: str) -> Rendered:
        """Render the bytes of a version. target: `webp`, `avif`, or empty. Raises `NotRendered`."""
        async with self._turn:
            if self._idle is not None:
                self._idle.cancel()
            try:
                rendered = await self._paint(data, wanted, target)
            finally:
                self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self.close)
        self._keep((version, msgspec.json.encode((wanted, target))), rendered)
        return rendered

    def close(self) -> None:
        """End the process."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._painter is not None:
            self._painter.close()
            self._painter = None

    async def _paint(self, data: bytes, wanted: Transformation, target: str) -> Rendered:
        try:
            async with asyncio.timeout(MOST_SECONDS):
                if self._painter is None:
                    self._painter = await _Painter.start()
                picture, painted = await self._painter.order(data, wanted, target)
        except (TimeoutError, asyncio.IncompleteReadError, OSError):
            self.close()
            raise NotRendered("") from None
        except BaseException:
            # an answer that nobody reads would be taken for that to the next order
            self.close()
            raise
        if not picture.kind:
            raise NotRendered(picture.fault)
        return Rendered(picture.kind, painted)

    def _keep(self, key: tuple[str, bytes], rendered: Rendered) -> None:
        if len(rendered.data) > _KEPT_BYTES // 8 or key in self._kept:
            return
        self._kept[key] = rendered
        self._kept_bytes += len(rendered.data)
        while self._kept_bytes > _KEPT_BYTES:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= len(oldest.data)


class _Painter:
    """A painter's process and the socket to it."""

    def __init__(self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._pid = pid
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls) -> _Painter:
        ours, theirs = socket.socketpair()
        limits = Limits(data_bytes=_MEMORY_BYTES, oom_score=1000)
        line = [sys.executable, "-P", "-B", "-m", "toft.storage.images.painter"]
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            pid = spawn(line, {"LC_ALL": "C.UTF-8"}, output=null, limits=limits, stdin=theirs.fileno())
        finally:
            theirs.close()
            os.close(null)
        reap_when_gone(pid)
        ours.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=ours)
        return cls(pid, reader, writer)

    async def order(self, data: bytes, wanted: Transformation, target: str) -> tuple[Picture, bytes]:
        raw = msgspec.json.encode(Order(wanted, target, len(data)))
        self._writer.write(len(raw).to_bytes(4, "big") + raw)
        self._writer.write(data)
        await self._writer.drain()
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        picture = msgspec.json.decode(await self._reader.readexactly(size), type=Picture)
        return picture, await self._reader.readexactly(picture.size)

    def close(self) -> None:
        self._writer.close()
        kill_group(self._pid)
