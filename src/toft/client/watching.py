"""Tells when something in a folder has changed, and is quiet again."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    type _State = dict[str, tuple[int, int]]

#: An editor writes in pieces: what changed is taken up when it has rested so long.
QUIET_SECONDS = 0.3
_LOOK_SECONDS = 0.1


def changes(folder: str) -> Iterator[None]:
    """Once at the beginning, then after each change, as long as whoever started us lives.

    The folder may come later, or go.
    """
    parent = os.getppid()
    known = _look(folder)
    yield
    while os.getppid() == parent:
        now = _look(folder)
        if now != known:
            while True:
                time.sleep(QUIET_SECONDS)
                later = _look(folder)
                if later == now:
                    break
                now = later
            known = now
            yield
        time.sleep(_LOOK_SECONDS)


def _look(folder: str) -> _State:
    try:
        with os.scandir(folder) as entries:
            return {
                entry.name: (status.st_mtime_ns, status.st_size)
                for entry in entries
                if entry.is_file() and (status := entry.stat())
            }
    except OSError:
        return {}
