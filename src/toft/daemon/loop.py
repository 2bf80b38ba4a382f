"""The one loop: ends what is due, looks at what was touched, refills what is missing, and waits for an event.

It wakes by `wake` and by the next deadline, and asks nothing twice. An act that it begins is a task; whatever
the task changes touches the backend and wakes the loop again.
"""

from __future__ import annotations

import asyncio

from toft.backends import keep
from toft.backends.act import Actor
from toft.backends.context import Context
from toft.backends.supply import Supply
from toft.errors.shape import ToftError


class Loop:
    """Runs until it is cancelled."""

    def __init__(self, wake: asyncio.Event) -> None:
        self._wake = wake

    async def run(self, context: Context, actor: Actor, supply: Supply) -> None:
        """Drive everything towards what is wished."""
        while True:
            self._wake.clear()
            try:
                self._turn(context, actor, supply)
            except ToftError as error:  # a full disk, mostly: what was not kept is wished again later
                context.tell.fault("loop", error)
                await asyncio.sleep(1)
            if not self._wake.is_set():
                await self._rest(context, supply)

    def _turn(self, context: Context, actor: Actor, supply: Supply) -> None:
        keep.end_due(context)
        while (backend_id := context.estate.next_touched()) is not None:
            try:
                actor.look(backend_id)
            except BaseException:
                context.estate.touch(backend_id)
                raise
        supply.refill()

    async def _rest(self, context: Context, supply: Supply) -> None:
        times = [at for at in (context.leases.next_deadline(), supply.next_change()) if at is not None]
        try:
            async with asyncio.timeout(None if not times else max(0.0, min(times) - context.clock.mono())):
                await self._wake.wait()
        except TimeoutError:
            pass
