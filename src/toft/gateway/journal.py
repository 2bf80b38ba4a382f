"""What a backend's services have to say about faults: the lease's own log, bounded, in memory.

Everything is written to the worker's log too, with the backend's name.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from toft.protocol.worker import LogLine
from toft.world import Clock

MOST_LINES: Final = 1000
_LONGEST_LINE: Final = 4000

_log = logging.getLogger("toft.gateway")


class Journal:
    """The last lines of one backend."""

    def __init__(self, backend_id: str, clock: Clock) -> None:
        self._backend_id = backend_id
        self._clock = clock
        self._lines: deque[LogLine] = deque(maxlen=MOST_LINES)

    def reporter(self, source: str) -> Callable[[str], None]:
        """Takes lines of one service."""

        def report(text: str) -> None:
            at = self._clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
            self._lines.append(LogLine(at, source, text[:_LONGEST_LINE]))
            _log.info("%s: %s", self._backend_id, text[:_LONGEST_LINE])

        return report

    @property
    def lines(self) -> list[LogLine]:
        """Oldest first."""
        return list(self._lines)
