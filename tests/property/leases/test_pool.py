"""No thing is ever in two hands, and none is lost, whatever the order of offers, takes and cancellations."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from toft.leases.pool import Pool

EVENTS = st.lists(
    st.sampled_from(["offer", "take", "cancel-first", "cancel-last", "tick", "fail"]), max_size=60
)


@given(EVENTS)
def test_each_thing_is_in_one_place(events: list[str]) -> None:
    """Things on the shelf, in hands and given back add up to those that were offered, each once."""

    async def play() -> None:
        pool = Pool[int](lambda _kind: None)
        takers: list[asyncio.Task[int]] = []
        offered = 0
        for event in events:
            waiting = [taker for taker in takers if not taker.done()]
            if event == "offer":
                pool.offer("a", offered)
                offered += 1
            elif event == "take":
                takers.append(asyncio.ensure_future(pool.take("a")))
            elif event == "fail":
                pool.fail("a", ValueError(), everyone=False)
            elif event == "tick":
                await asyncio.sleep(0)
            elif waiting:
                waiting[0 if event == "cancel-first" else -1].cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        held = [t.result() for t in takers if t.done() and not t.cancelled() and t.exception() is None]
        shelved: list[int] = []
        while (thing := pool.take_now("a")) is not None:
            shelved.append(thing)
        assert sorted(held + shelved) == list(range(offered))
        waiting_now = [taker for taker in takers if not taker.done()]
        assert pool.waiting("a") == len(waiting_now)
        assert not (shelved and waiting_now)
        for taker in waiting_now:
            taker.cancel()
        await asyncio.gather(*takers, return_exceptions=True)

    asyncio.run(play())
