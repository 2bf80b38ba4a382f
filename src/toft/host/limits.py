"""What a process may use at most, and who goes first when memory is short.

Limits are set on ourselves around posix_spawn and taken back after it: a child inherits them from its
first instruction on, which no call from outside could promise. Only soft limits are touched, since a
hard one could not be raised again. The one that could stop us meanwhile, memory, is set on ourselves only if
we are well below it, and otherwise on the child as soon as it is there.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

_ROOM_BYTES = 64 << 20
_OOM_SCORE = Path("/proc/self/oom_score_adj")


class Limits(msgspec.Struct, frozen=True):
    """Limits of one process and its descendants; None leaves ours.

    Core dumps are always off: they would carry secrets.
    processes: counted by the kernel per user id, so only for processes with an id of their own.
    data_bytes: heap and private mappings of each single process.
    oom_score: 0 to 1000, higher is ended earlier when memory runs out.
    """

    open_files: int | None = None
    processes: int | None = None
    data_bytes: int | None = None
    oom_score: int | None = None


@contextmanager
def inherited(limits: Limits | None) -> Generator[None]:
    """What is spawned inside has these limits."""
    if limits is None:
        yield
        return
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_DATA: limits.data_bytes if _leaves_us_room(limits) else None,
    }
    before: list[tuple[int, tuple[int, int]]] = []
    score_before = _raise_oom_score(limits.oom_score)
    try:
        for kind, amount in wanted.items():
            if amount is not None:
                soft, hard = resource.getrlimit(kind)
                before.append((kind, (soft, hard)))
                resource.setrlimit(
                    kind, (amount if hard == resource.RLIM_INFINITY else min(amount, hard), hard)
                )
        yield
    finally:
        for kind, pair in reversed(before):
            resource.setrlimit(kind, pair)
        if score_before is not None:
            with suppress(OSError):
                _OOM_SCORE.write_text(score_before)


def impose_memory(limits: Limits | None, pid: int) -> None:
    """Set the memory limit on a child of ours that could not inherit it."""
    if limits is not None and limits.data_bytes is not None and not _leaves_us_room(limits):
        with suppress(OSError):
            _, hard = resource.prlimit(pid, resource.RLIMIT_DATA)
            resource.prlimit(pid, resource.RLIMIT_DATA, (limits.data_bytes, hard))


def _leaves_us_room(limits: Limits) -> bool:
    """Whether we could live under the memory limit for a moment."""
    if limits.data_bytes is None:
        return False
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    return pages * os.sysconf("SC_PAGE_SIZE") + _ROOM_BYTES <= limits.data_bytes


def _raise_oom_score(score: int | None) -> str | None:
    """Take `score` as our own for a moment; the one to return to, or None when nothing was changed."""
    if score is None:
        return None
    try:
        before = _OOM_SCORE.read_text()
        if int(before) >= score:
            return None
        _OOM_SCORE.write_text(str(score))
    except (OSError, ValueError):
        return None
    return before
