"""One request on a connection and what is known about its answer; it is also the request's body.

The body is kept as it arrives, and the client is not read from while more than `KEPT_BYTES` of it wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

from toft.http.message import BodyTooLarge, ClientGone, Headers

KEPT_BYTES: Final = 64 * 1024


class Exchange:
    """See the module. `ask_for_more` is called before it is waited for the rest of the body."""

    __slots__ = (
        "_ask_for_more",
        "_chunks",
        "_kept",
        "_waiter",
        "headers",
        "is_answered",
        "is_complete",
        "is_kept_alive",
        "is_old",
        "is_over",
        "method",
        "path",
        "query",
        "waits_for_continue",
    )

    def __init__(
        self,
        method: str,
        path: str,
        query: str,
        headers: Headers,
        ask_for_more: Callable[[Exchange], None],
        *,
        is_old: bool,
        is_kept_alive: bool,
        waits_for_continue: bool,
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        #: whether the client speaks HTTP/1.0
        self.is_old = is_old
        self.is_kept_alive = is_kept_alive
        #: the client holds the body back until it is asked for it
        self.waits_for_continue = waits_for_continue
        #: all of the request has arrived
        self.is_complete = False
        #: all of the response has been written
        self.is_answered = False
        #: the client has gone
        self.is_over = False
        self._ask_for_more = ask_for_more
        self._chunks: list[bytes] = []
        self._kept = 0
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_full(self) -> bool:
        """Whether there is enough of the body for now."""
        return self._kept > KEPT_BYTES

    def add(self, chunk: bytes) -> None:
        """A piece of the body has arrived."""
        self._chunks.append(chunk)
        self._kept += len(chunk)
        self.wake()

    def wake(self) -> None:
        """Something has changed for whoever reads the body."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # As the request's body: see `message.Body`.

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        while True:
            if self._chunks:
                yield self._take()
            elif self.is_complete:
                return
            elif self.is_over or self.is_answered:
                raise ClientGone
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                self._ask_for_more(self)
                await self._waiter

    async def read(self, limit: int) -> bytes:
        announced = self.headers.get(b"content-length") or ""
        if announced.isdecimal() and int(announced) > limit:
            raise BodyTooLarge
        if self.is_complete:
            body = self._take()
        else:
            chunks: list[bytes] = []
            size = 0
            async for chunk in self:
                size += len(chunk)
                if size > limit:
                    raise BodyTooLarge
                chunks.append(chunk)
            body = b"".join(chunks)
        if len(body) > limit:
            raise BodyTooLarge
        return body

    def _take(self) -> bytes:
        taken = b"".join(self._chunks)
        self._chunks.clear()
        self._kept = 0
        return taken
