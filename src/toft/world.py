"""The only place that asks the machine for the time or for chance, so that tests can say both."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one that people read, one that never jumps."""

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        ...

    def unix(self) -> float:
        """The wall clock as seconds since 1970."""
        ...

    def mono(self) -> float:
        """Seconds on a clock that only goes forward and is shared by all processes until a reboot."""
        ...


class Entropy(Protocol):
    """A source of unpredictable bytes."""

    def bytes(self, count: int) -> bytes:
        """`count` bytes fit for keys and passwords."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def unix(self) -> float:
        return time.time()

    def mono(self) -> float:
        return time.monotonic()


class SystemEntropy:
    """The kernel's random source."""

    def bytes(self, count: int) -> bytes:
        return os.urandom(count)
