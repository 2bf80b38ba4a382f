"""The part of the control API that tells a lease's log: its services and its Postgres, in order of time."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any

from toft.backends.context import Context
from toft.backends.gateway import WorkerLost
from toft.backends.keep import backend_of
from toft.http.message import Request
from toft.protocol.routes import LeaseLog
from toft.protocol.worker import LogLine

#: so much of a postmaster's log is looked at, from its end
_TAIL_BYTES = 256 * 1024
#: as `engine/conf.py` has Postgres begin its lines
_LINE = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d\.\d{3}) UTC \[\d+\] ([A-Z]+): +(.*)")
#: what Postgres says about itself when all is well
_QUIET = frozenset({"LOG", "STATEMENT"})


class LogsApi:
    """Answers with messages."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def show(self, request: Request, names: dict[str, str], message: None) -> LeaseLog:
        lease = self._context.leases.get(names["id"])
        backend = backend_of(self._context, lease)
        try:
            told = await self._context.gateway.log(backend.id)
        except WorkerLost:
            told = []
        path = self._context.places.postmaster_log(backend.id)
        lines = [*told, *await asyncio.to_thread(_read, path)]
        lines.sort(key=lambda line: line.at)
        return LeaseLog(lease.id, lines)

    def methods(self) -> dict[str, Any]:
        """Its routes by name."""
        return {"show_log": self.show}


def _read(path: Path) -> list[LogLine]:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            raw = file.read()
    except FileNotFoundError:
        return []
    return parse_postgres(raw.decode("utf-8", "replace"))


def parse_postgres(text: str) -> list[LogLine]:
    """Pure: warnings and errors out of a postmaster's log. Lines that go on belong to the one before."""
    lines: list[LogLine] = []
    is_wanted = False
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is not None:
            day, time, level, words = found.groups()
            is_wanted = level not in _QUIET
            if is_wanted:
                lines.append(LogLine(f"{day}T{time}Z", "postgres", f"{level}: {words}"))
        elif is_wanted and line.startswith("\t"):
            last = lines.pop()
            lines.append(LogLine(last.at, last.source, f"{last.text} {line.strip()}"))
    return lines
