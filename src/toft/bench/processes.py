"""Which processes belong to a home, and what they cost."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec


class Cost(msgspec.Struct, frozen=True):
    """Sums over a set of processes: kB of proportional memory, seconds of CPU, voluntary switches so far."""

    processes: int
    pss_kb: int
    cpu_seconds: float
    wakeups: int


def processes_of(*marks: str) -> set[int]:
    """Processes whose command line or TOFT_HOME names one of the marks, and all of their descendants."""
    parents: dict[int, int] = {}
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError, IndexError):
            words = (entry / "cmdline").read_bytes()
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if any(mark.encode() in words for mark in marks):
                found.add(int(entry.name))
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def cost_of(pids: set[int], ticks_per_second: int) -> Cost:
    """What these processes cost now; one that has ended meanwhile counts nothing."""
    count = memory = ticks = switches = 0
    for pid in pids:
        place = Path(f"/proc/{pid}")
        with suppress(OSError, IndexError, StopIteration):
            lines = (place / "smaps_rollup").read_text().splitlines()
            memory += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            status = (place / "status").read_text().splitlines()
            switches += next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt"))
            count += 1
    return Cost(count, memory, ticks / ticks_per_second, switches)
