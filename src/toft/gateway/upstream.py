"""The postmaster behind a backend, awake or asleep, as everything that connects to it sees it.

A postmaster that sleeps, or does not answer, is woken by the daemon: it is asked once, and whoever wants to
connect waits until it has told, for a bounded time. There is no other waiting between a client and its
database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from toft.pg.sqlstate import CANNOT_CONNECT_NOW, PostgresError, Unreachable

WAKE_SECONDS: Final = 30.0
#: Between tries, when the daemon says that it runs and it does not answer yet.
_RETRY_SECONDS: Final = 0.05


class Upstream:
    """One backend's postmaster. `ask_to_wake` tells the daemon that somebody waits."""

    __slots__ = ("_ask_to_wake", "_changed", "_failure", "_is_asked", "is_awake", "socket_path")

    def __init__(self, socket_path: str, *, is_awake: bool, ask_to_wake: Callable[[], None]) -> None:
        self.socket_path = socket_path
        self.is_awake = is_awake
        self._ask_to_wake = ask_to_wake
        self._is_asked = False
        self._failure: str | None = None
        self._changed: asyncio.Event | None = None

    async def reach[T](self, dial: Callable[[str], Awaitable[T]]) -> T:
        """What `dial(socket_path)` gives, tried again when the postmaster has been woken.

        Raises `Unreachable` with a reason that a user can read, or what `dial` raises.
        """
        try:
            async with asyncio.timeout(WAKE_SECONDS):
                has_failed = False
                while True:
                    if not self.is_awake:
                        await self._wait_until_awake()
                        if has_failed:
                            await asyncio.sleep(_RETRY_SECONDS)
                    try:
                        return await dial(self.socket_path)
                    except (Unreachable, OSError):
                        pass
                    except PostgresError as error:
                        if error.sqlstate != CANNOT_CONNECT_NOW:
                            raise
                    has_failed = True
                    self.is_awake = False
        except TimeoutError:
            raise Unreachable(f"the database did not wake up within {WAKE_SECONDS:.0f} seconds") from None

    def set_awake(self, *, is_awake: bool, failure: str | None = None) -> None:
        """What the daemon tells. `failure`: it will not come back, for this reason."""
        self.is_awake = is_awake
        self._failure = failure
        self._is_asked = False
        if self._changed is None:
            return
        if is_awake or failure is not None:
            self._changed.set()
            self._changed = None
        else:
            # The daemon may have dropped the question that it got while it still thought it awake.
            self.ask_again()

    def ask_again(self) -> None:
        """Tell the daemon once more, if anybody waits."""
        if self._changed is not None:
            self._is_asked = True
            self._ask_to_wake()

    def move(self, socket_path: str, *, is_awake: bool) -> None:
        """From now on another postmaster stands here; who waits goes on to it."""
        self.socket_path = socket_path
        self.set_awake(is_awake=is_awake)

    async def _wait_until_awake(self) -> None:
        if self._failure is None:
            if self._changed is None:
                self._changed = asyncio.Event()
            if not self._is_asked:
                self._is_asked = True
                self._ask_to_wake()
            await self._changed.wait()
        if self._failure is not None:
            raise Unreachable(self._failure)
