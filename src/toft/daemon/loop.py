"""The one loop: ends what is due, looks at what was touched, refills what is missing, and waits for an event.

It wakes by `wake` and by the next deadline, and asks nothing twice. An act that it begins is a task; whatever
the task changes touches the backend and wakes the loop again. What it could not keep (the disk is full,
mostly) it wishes again when it is begun again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from toft.backends import keep
from toft.backends.act import Actor
from toft.backends.context import Context
from toft.backends.supply import Supply


class Loop:
    """Drives everything towards what is wished, until it is cancelled."""

    def __init__(self, context: Context, actor: Actor, supply: Supply, wake: asyncio.Event) -> None:
        self._context = context
        self._actor = actor
        self._supply = supply
        self._wake = wake

    async def run(self) -> None:
        """Turn after turn."""
        while True:
            self._wake.clear()
            self._turn()
            if not self._wake.is_set():
                await self._rest()

    def _turn(self) -> None:
        keep.end_due(self._context)
        estate = self._context.estate
        while (backend_id := estate.next_touched()) is not None:
            try:
                self._actor.look(backend_id)
            except BaseException:
                estate.touch(backend_id)
                raise
        self._supply.refill()

    async def _rest(self) -> None:
        """Until something happens, or the next deadline."""
        times = (self._context.leases.next_deadline(), self._supply.next_change())
        due = min((at for at in times if at is not None), default=None)
        pause = None if due is None else max(0.0, due - self._context.clock.mono())
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._wake.wait()
