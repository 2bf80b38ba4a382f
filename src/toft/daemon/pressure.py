"""Tells when memory runs short: by the kernel's pressure trigger where there is one, else when it is asked.

The trigger is an event: nothing is read again and again. uvloop does not know the kind of readiness that it
has (POLLPRI), so it sits in an epoll set, which becomes readable in the ordinary way.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_TRIGGER = Path("/proc/pressure/memory")
#: tasks stalled for 150 ms of any two seconds: the kernel lets an ordinary user ask for two-second windows
_WISH = b"some 150000 2000000\0"
_MEMINFO = Path("/proc/meminfo")
#: Memory is short when less than this share is available.
LEAST_SHARE = 0.06
#: After pressure the pool stays small for so long.
CALM_SECONDS = 30.0


def is_short() -> bool:
    """Whether little memory is available now."""
    values: dict[str, int] = {}
    try:
        for line in _MEMINFO.read_text().splitlines():
            name, _, rest = line.partition(":")
            values[name] = int(rest.split()[0])
    except (OSError, ValueError, IndexError):
        return False
    return values.get("MemAvailable", 1) < LEAST_SHARE * values.get("MemTotal", 1)


class PressureWatch:
    """Calls `changed(True)` when memory gets short and `changed(False)` when it is well again."""

    def __init__(self, changed: Callable[[bool], None]) -> None:
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._calm: asyncio.TimerHandle | None = None
        self._trigger = -1
        self._epoll: select.epoll | None = None

    def open(self) -> None:
        """Begin to watch; without a trigger on this kernel nothing is watched."""
        with suppress(OSError):
            self._trigger = os.open(_TRIGGER, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            os.write(self._trigger, _WISH)
            self._epoll = select.epoll()
            self._epoll.register(self._trigger, select.EPOLLPRI | select.EPOLLET)
            self._loop.add_reader(self._epoll.fileno(), self._pressed)

    def close(self) -> None:
        """Idempotent."""
        if self._calm is not None:
            self._calm.cancel()
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None
        if self._trigger >= 0:
            os.close(self._trigger)
            self._trigger = -1

    def _pressed(self) -> None:
        if self._epoll is not None:
            self._epoll.poll(0)
        if self._calm is None:
            self._changed(True)
        else:
            self._calm.cancel()
        self._calm = self._loop.call_later(CALM_SECONDS, self._is_calm)

    def _is_calm(self) -> None:
        if is_short():
            self._calm = self._loop.call_later(CALM_SECONDS, self._is_calm)
            return
        self._calm = None
        self._changed(False)
