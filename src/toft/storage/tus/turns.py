"""Who works on a draft: one request at a time, and a newcomer makes the one before it stop.

A client that comes back has often lost its connection without our noticing; its old request would wait for
bytes until then. What that one has got is kept, and the newcomer sees it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

from toft.storage.tus.headers import is_locked

WAIT_SECONDS: Final = 5.0


class Turn:
    """The right to work on one draft."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self._reading: asyncio.Task[Any] | None = None

    async def run[T](self, reading: Coroutine[Any, Any, T]) -> T:
        """Do what waits for the client, as long as nobody else comes. Raises `StorageError` when one does."""
        if self.users > 1:
            reading.close()
            raise is_locked()
        task = self._reading = asyncio.ensure_future(reading)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            raise is_locked() from None
        finally:
            self._reading = None

    def interrupt(self) -> None:
        """Make whoever waits for a client stop."""
        if self._reading is not None:
            self._reading.cancel()


class Turns:
    """All drafts that somebody works on."""

    def __init__(self) -> None:
        self._turns: dict[str, Turn] = {}

    @asynccontextmanager
    async def take(self, name: str) -> AsyncGenerator[Turn]:
        """Have this draft for oneself. Raises `StorageError` (423) when it is not given up in time."""
        turn = self._turns.setdefault(name, Turn())
        turn.users += 1
        try:
            turn.interrupt()
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await turn.lock.acquire()
            except TimeoutError:
                raise is_locked() from None
            try:
                yield turn
            finally:
                turn.lock.release()
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[name]
