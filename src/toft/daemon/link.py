"""The daemon's end of the channel to one gateway worker: requests with answers, notices, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec

from toft.backends.gateway import WorkerLost
from toft.protocol.worker import Attached, Done, Failed, FromWorker, Hello, Log, ToWorker, Usage, Wake

_decoder = msgspec.json.Decoder(FromWorker)
_encoder = msgspec.json.Encoder()
_LONGEST_MESSAGE = 64 << 20

type Answer = Done | Failed | Attached | Usage | Log


class Link(asyncio.Protocol):
    """One connection. `on_wake` hears notices; `on_lost` is called once when the worker has gone."""

    def __init__(self, on_wake: Callable[[str], None], on_lost: Callable[[], None]) -> None:
        self._on_wake = on_wake
        self._on_lost = on_lost
        self._seq = 0
        self._pending: dict[int, asyncio.Future[Answer]] = {}
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self.is_lost = False

    @classmethod
    async def open(cls, path: Path, on_wake: Callable[[str], None], on_lost: Callable[[], None]) -> Link:
        """Connect. Raises OSError when nobody listens."""
        loop = asyncio.get_running_loop()
        _, link = await loop.create_unix_connection(lambda: cls(on_wake, on_lost), str(path))
        return link

    async def hello(self, version: str) -> Attached:
        """Greet the worker; what it serves already."""
        answer = await self.ask(lambda seq: Hello(seq, version))
        if not isinstance(answer, Attached):
            raise WorkerLost
        return answer

    async def ask(self, make: Callable[[int], ToWorker]) -> Answer:
        """Send a request and wait for its answer. Raises `WorkerLost`."""
        if self._transport is None or self.is_lost:
            raise WorkerLost
        self._seq += 1
        seq = self._seq
        raw = _encoder.encode(make(seq))
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._pending[seq] = answer
        self._transport.write(len(raw).to_bytes(4, "big") + raw)
        try:
            return await answer
        finally:
            self._pending.pop(seq, None)

    def close(self) -> None:
        """Hang up; the worker goes on serving."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            size = int.from_bytes(self._received[:4], "big")
            if size > _LONGEST_MESSAGE:
                self.close()
                return
            if len(self._received) < 4 + size:
                return
            raw = bytes(self._received[4 : 4 + size])
            del self._received[: 4 + size]
            self._hear(_decoder.decode(raw))

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        pending, self._pending = self._pending, {}
        for answer in pending.values():
            if not answer.done():
                answer.set_exception(WorkerLost())
        self._on_lost()

    def _hear(self, message: FromWorker) -> None:
        if isinstance(message, Wake):
            self._on_wake(message.backend_id)
            return
        answer = self._pending.get(message.seq)
        if answer is not None and not answer.done():
            answer.set_result(message)
