"""Facts become lines: `2026-01-31T12:00:00.000Z info lease.taken lease=… backend=…`.

The file is kept small: when it passes its size it becomes `<name>.1` and a new one begins. Writing never
raises: a full disk must not end the daemon.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import msgspec

from toft.telemetry.events import Event, Fault
from toft.world import Clock

LEVELS = ("debug", "info", "warning", "error")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/+")

type Sink = Callable[[Event], None]


class Telemetry:
    """Where rooms report to. Sinks see every event in order; one that fails is no reason to stop."""

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = list(sinks)

    def __call__(self, event: Event) -> None:
        for sink in self._sinks:
            with contextlib.suppress(OSError, ValueError):
                sink(event)

    def add(self, sink: Sink) -> None:
        """Also report to this one."""
        self._sinks.append(sink)

    def remove(self, sink: Sink) -> None:
        """No longer report to this one."""
        self._sinks.remove(sink)

    def fault(self, where: str, error: BaseException) -> None:
        """Report an exception that nobody expected, with the place where it was raised."""
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
        self(Fault(where=f"{where} ({place})", cause=f"{type(error).__name__}: {error}"))


def format_line(at: str, event: Event) -> str:
    """One event as one line; values with other than plain characters are quoted as JSON strings."""
    words = [at, event.level, event.name]
    for field, value in msgspec.structs.asdict(event).items():
        words.append(f"{field}={_word(value)}")
    return " ".join(words)


def _word(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value)
    return text if text and _PLAIN.issuperset(text) else json.dumps(text, ensure_ascii=False)


class LogFile:
    """A sink that appends to a file and turns it over when it grows beyond `most_bytes`."""

    def __init__(self, path: Path, clock: Clock, *, level: str = "info", most_bytes: int = 5_000_000) -> None:
        self._path = path
        self._clock = clock
        self._quietest = LEVELS.index(level)
        self._most_bytes = most_bytes
        self._file = self._open()

    def __call__(self, event: Event) -> None:
        if LEVELS.index(event.level) < self._quietest:
            return
        at = self._clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._file.write(format_line(at, event) + "\n")
        self._file.flush()
        if self._file.tell() > self._most_bytes:
            self._turn_over()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def take_output(self) -> None:
        """Let this process's own output go to the file: what libraries print must not be lost."""
        self._file.flush()
        for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
            stream.flush()
            os.dup2(self._file.fileno(), descriptor)

    def _open(self) -> TextIO:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return self._path.open("a", encoding="utf-8", errors="backslashreplace")

    def _turn_over(self) -> None:
        self._file.close()
        self._path.replace(self._path.with_name(self._path.name + ".1"))
        self._file = self._open()
