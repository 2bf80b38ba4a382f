"""The CPU that a gateway worker and a backend's Postgres take."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from toft.bench.processes import processes_of

_TICKS = os.sysconf("SC_CLK_TCK")


class CpuMeter:
    """Between `start` and `stop`: seconds of CPU. run: the daemon's run folder."""

    def __init__(self, run: str, backend_id: str) -> None:
        self._run = run
        self._backend_id = backend_id
        self._before = (0.0, 0.0)

    @property
    def workers(self) -> set[int]:
        """The gateway's processes."""
        return {pid for pid in processes_of("toft.gateway.worker") if self._run.encode() in _words(pid)}

    def start(self) -> None:
        """Count from here on."""
        self._before = self._read()

    def stop(self) -> tuple[float, float]:
        """What the workers, and what Postgres has taken since then."""
        now = self._read()
        return now[0] - self._before[0], now[1] - self._before[1]

    def own_kb(self) -> int:
        """Memory that belongs to the workers alone."""
        total = 0
        for pid in self.workers:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))
        return total

    def _read(self) -> tuple[float, float]:
        return _seconds(self.workers), _seconds(processes_of(self._backend_id))


def _words(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _seconds(pids: set[int]) -> float:
    ticks = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS
