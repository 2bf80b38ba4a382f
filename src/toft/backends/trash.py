"""Directories on their way out: renamed away at once, removed in batches by a job process.

Some file systems (ext4 without a journal) make files slowly for seconds after others were removed, so nothing
is removed while somebody waits for a backend.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import NoneType

from toft.backends.chores import Remove
from toft.backends.jobs import Jobs
from toft.errors.shape import ToftError
from toft.telemetry.events import TrashSwept
from toft.telemetry.log import Telemetry
from toft.world import Clock, Entropy

#: Swept after so long, or when so many directories wait.
PATIENCE_SECONDS = 2.0
MOST_WAITING = 32


class Trash:
    """The trash of one home."""

    def __init__(
        self,
        folder: Path,
        jobs: Jobs,
        clock: Clock,
        entropy: Entropy,
        tell: Telemetry,
        is_busy: Callable[[], bool],
    ) -> None:
        self._folder = folder
        self._jobs = jobs
        self._clock = clock
        self._entropy = entropy
        self._tell = tell
        self._is_busy = is_busy
        self._full = asyncio.Event()
        self._waiting: list[Path] = []

    def throw(self, path: Path) -> None:
        """Move a directory here; fine when there is none. One on another disk waits beside its place."""
        name = f".{path.name}.{self._entropy.bytes(4).hex()}"
        with suppress(FileNotFoundError):
            try:
                target = path.rename(self._folder / name)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                target = path.rename(path.with_name(name))
            self._note([target])

    def find(self) -> None:
        """Note what an earlier daemon left here."""
        self._note(list(self._folder.iterdir()))

    async def sweep_forever(self) -> None:
        """Remove what comes in, in batches, when nobody is kept waiting by it."""
        while True:
            await self._full.wait()
            if len(self._waiting) < MOST_WAITING or self._is_busy():
                await asyncio.sleep(PATIENCE_SECONDS)
            with suppress(ToftError):
                await self.sweep()

    async def sweep(self) -> None:
        """Remove all that is here now."""
        batch, self._waiting = self._waiting, []
        self._full.clear()
        if not batch:
            return
        begun = self._clock.mono()
        try:
            await self._jobs.run(Remove(tuple(batch)), NoneType)
        except ToftError:
            self._note(batch)
            raise
        self._tell(TrashSwept(directories=len(batch), took_ms=(self._clock.mono() - begun) * 1000))

    def _note(self, paths: list[Path]) -> None:
        self._waiting += paths
        if self._waiting:
            self._full.set()
