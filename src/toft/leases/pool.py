"""Ready things by kind, and those who wait for one: first come, first served.

A thing is in one place at a time: with its maker, on a shelf, or with the one who took it. Handing over is
a pop from the shelf or the result of one future, so no thing goes to two takers; a taker that is cancelled in
the very moment in which it was handed a thing gives it back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable


class Pool[T]:
    """Shelves of ready things. `changed` is called with a kind when somebody waits, takes or gives up."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._ready: dict[str, deque[T]] = {}
        self._waiting: dict[str, deque[asyncio.Future[T]]] = {}

    def offer(self, kind: str, thing: T) -> None:
        """A thing is ready: it goes to the one who waited longest, else to the shelf."""
        queue = self._waiting.get(kind)
        while queue:
            waiter = queue.popleft()
            if not waiter.done():
                waiter.set_result(thing)
                return
        self._ready.setdefault(kind, deque()).append(thing)

    def take_now(self, kind: str) -> T | None:
        """A ready thing, or None; never passes those who wait."""
        shelf = self._ready.get(kind)
        if not shelf:
            return None
        thing = shelf.popleft()
        self._changed(kind)
        return thing

    async def take(self, kind: str) -> T:
        """A ready thing, now or when one is offered; raises what `fail` gives."""
        thing = self.take_now(kind)
        if thing is not None:
            return thing
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(kind, deque()).append(waiter)
        self._changed(kind)
        try:
            return await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.offer(kind, waiter.result())
            with contextlib.suppress(ValueError):
                self._waiting[kind].remove(waiter)
            self._changed(kind)
            raise

    def withdraw(self, kind: str, thing: T) -> bool:
        """Take this very thing off its shelf; False when it is not there."""
        try:
            self._ready.get(kind, deque()).remove(thing)
        except ValueError:
            return False
        return True

    def withdraw_any(self, kind: str) -> T | None:
        """Take the thing that stood longest off the shelf, for throwing away."""
        shelf = self._ready.get(kind)
        return shelf.popleft() if shelf else None

    def fail(self, kind: str, error: Exception, *, everyone: bool) -> None:
        """Nothing comes: tell the one who waited longest, or everyone who waits for this kind."""
        queue = self._waiting.get(kind)
        while queue:
            waiter = queue.popleft()
            if not waiter.done():
                waiter.set_exception(error)
                if not everyone:
                    return

    def ready(self, kind: str) -> int:
        """How many stand on the shelf."""
        return len(self._ready.get(kind, ()))

    def waiting(self, kind: str) -> int:
        """How many wait."""
        return len(self._waiting.get(kind, ()))

    def kinds(self) -> set[str]:
        """Kinds with something on the shelf or somebody waiting."""
        return {
            *(kind for kind, shelf in self._ready.items() if shelf),
            *(kind for kind, queue in self._waiting.items() if queue),
        }
