"""The engines of this machine, found once per daemon by a job process; whoever needs one earlier waits."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

from toft.backends.chores import FindEngines
from toft.backends.jobs import Jobs
from toft.engine.binaries import load_engine
from toft.engine.prepare import Engine
from toft.errors.engine import EngineBroken
from toft.telemetry.events import EnginesFound
from toft.telemetry.log import Telemetry
from toft.world import Clock


class Engines:
    """Engines by id."""

    def __init__(self, home: Path, bindir: Path | None, jobs: Jobs, clock: Clock, tell: Telemetry) -> None:
        self._home = home
        self._bindir = bindir
        self._jobs = jobs
        self._clock = clock
        self._tell = tell
        self._search: asyncio.Task[tuple[Engine, ...]] | None = None
        self._known: dict[str, Engine] = {}

    @property
    def is_known(self) -> bool:
        """Whether the search is over."""
        return self._search is not None and self._search.done()

    async def all(self) -> tuple[Engine, ...]:
        """All usable engines, best first. A search that failed is made again by the next who asks."""
        if self._search is None or (self._search.done() and self._search.exception() is not None):
            self._search = asyncio.get_running_loop().create_task(self._find())
        return await asyncio.shield(self._search)

    async def get(self, engine_id: str) -> Engine:
        """The engine that a template or backend was made with, also when better ones came since."""
        engine = self._known.get(engine_id) or load_engine(self._home, engine_id)
        if engine is None:
            await self.all()
            engine = self._known.get(engine_id)
        if engine is None:
            raise EngineBroken(
                path=str(self._home / "engines" / engine_id),
                cause="it is not there any more",
                mend="release the leases that use it and take new ones",
            )
        self._known[engine_id] = engine
        return engine

    def unused(self, in_use: Collection[str]) -> list[Path]:
        """Folders of engines that are not found any more and that nothing uses, once the search is over."""
        if not self.is_known:
            return []
        kept = {*self._known, *in_use}
        return [path for path in (self._home / "engines").iterdir() if path.name not in kept]

    async def close(self) -> None:
        """Forget a search that is still going on."""
        if self._search is not None:
            self._search.cancel()
            await asyncio.wait([self._search])

    async def _find(self) -> tuple[Engine, ...]:
        begun = self._clock.mono()
        found = tuple(await self._jobs.run(FindEngines(self._home, self._bindir), list[Engine]))
        self._known.update((engine.id, engine) for engine in found)
        names = ",".join(engine.id for engine in found)
        self._tell(EnginesFound(engines=names, took_ms=(self._clock.mono() - begun) * 1000))
        return found
