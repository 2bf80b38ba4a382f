"""Handing over: first come, first served, and nothing to two or to nobody."""

from __future__ import annotations

import asyncio

import pytest

from toft.leases.pool import Pool


def make_pool() -> Pool[str]:
    return Pool[str](lambda _kind: None)


async def test_take_now() -> None:
    """A ready thing is handed over at once, the one that stood longest first."""
    pool = make_pool()
    pool.offer("a", "1")
    pool.offer("a", "2")
    assert [pool.take_now("a"), pool.take_now("a"), pool.take_now("a")] == ["1", "2", None]


async def test_kinds_are_apart() -> None:
    """Nobody gets a thing of another kind."""
    pool = make_pool()
    pool.offer("a", "1")
    assert pool.take_now("b") is None
    assert pool.ready("a") == 1


async def test_first_come_first_served() -> None:
    """Who waited longest is served first."""
    pool = make_pool()
    first = asyncio.ensure_future(pool.take("a"))
    second = asyncio.ensure_future(pool.take("a"))
    await asyncio.sleep(0)
    assert pool.waiting("a") == 2
    pool.offer("a", "1")
    pool.offer("a", "2")
    assert await asyncio.gather(first, second) == ["1", "2"]
    assert pool.waiting("a") == 0


async def test_a_taker_that_gives_up_is_passed_over() -> None:
    """A cancelled taker neither counts nor gets anything."""
    pool = make_pool()
    first = asyncio.ensure_future(pool.take("a"))
    second = asyncio.ensure_future(pool.take("a"))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    assert pool.waiting("a") == 1
    pool.offer("a", "1")
    assert await second == "1"


async def test_cancelled_in_the_tick_of_the_hand_over() -> None:
    """A taker that is cancelled when it was handed a thing but has not run yet gives it back."""
    pool = make_pool()
    taker = asyncio.ensure_future(pool.take("a"))
    await asyncio.sleep(0)
    pool.offer("a", "1")
    taker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taker
    assert pool.take_now("a") == "1"


async def test_given_back_goes_to_the_next() -> None:
    """What is given back goes to the next who waits, not to the shelf."""
    pool = make_pool()
    first = asyncio.ensure_future(pool.take("a"))
    second = asyncio.ensure_future(pool.take("a"))
    await asyncio.sleep(0)
    pool.offer("a", "1")
    first.cancel()
    assert await second == "1"
    assert pool.ready("a") == 0


async def test_fail_one_or_everyone() -> None:
    """A failed making is told to one who waits; a failed template to all."""
    pool = make_pool()
    takers = [asyncio.ensure_future(pool.take("a")) for _ in range(3)]
    await asyncio.sleep(0)
    pool.fail("a", ValueError("one"), everyone=False)
    assert pool.waiting("a") == 2
    pool.fail("a", ValueError("all"), everyone=True)
    assert pool.waiting("a") == 0
    results = await asyncio.gather(*takers, return_exceptions=True)
    assert [str(result) for result in results] == ["one", "all", "all"]


async def test_withdraw() -> None:
    """A thing that broke on the shelf can be taken off it, once."""
    pool = make_pool()
    pool.offer("a", "1")
    assert pool.withdraw("a", "1")
    assert not pool.withdraw("a", "1")
    assert pool.take_now("a") is None
