"""Waiting for a postmaster that sleeps: who asks, how often, and who is told what."""

from __future__ import annotations

import asyncio

import pytest

from toft.gateway.upstream import Upstream
from toft.pg.sqlstate import PostgresError, Unreachable


class Asked:
    """Counts questions to the daemon."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


async def dial(path: str) -> str:
    return path


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_awake() -> None:
    """An awake postmaster is dialled at once."""
    asked = Asked()
    assert await Upstream("/a", is_awake=True, ask_to_wake=asked).reach(dial) == "/a"
    assert asked.times == 0


async def test_asked_once() -> None:
    """However many wait, the daemon is asked once; when it wakes, all go on."""
    asked = Asked()
    upstream = Upstream("/a", is_awake=False, ask_to_wake=asked)
    waiting = [asyncio.get_running_loop().create_task(upstream.reach(dial)) for _ in range(5)]
    await settle()
    assert asked.times == 1
    upstream.set_awake(is_awake=True)
    assert await asyncio.gather(*waiting) == ["/a"] * 5


async def test_asked_again_when_told_that_it_sleeps() -> None:
    """A daemon that only now puts it to sleep may have missed the question, so it gets it again."""
    asked = Asked()
    upstream = Upstream("/a", is_awake=False, ask_to_wake=asked)
    waiting = asyncio.get_running_loop().create_task(upstream.reach(dial))
    await settle()
    upstream.set_awake(is_awake=False)
    assert asked.times == 2
    upstream.ask_again()  # a new daemon
    assert asked.times == 3
    upstream.set_awake(is_awake=True)
    assert await waiting == "/a"
    upstream.set_awake(is_awake=False)
    upstream.ask_again()
    assert asked.times == 3  # nobody waits


async def test_nobody_answers() -> None:
    """A postmaster that does not answer, or says that it cannot yet, is asked for and tried again."""
    asked = Asked()
    upstream = Upstream("/a", is_awake=True, ask_to_wake=asked)
    failures: list[Exception] = [
        ConnectionRefusedError(),
        Unreachable("x"),
        PostgresError({"C": "57P03", "M": "starting up"}),
    ]

    async def fail_first(path: str) -> str:
        if failures:
            raise failures.pop()
        return path

    waiting = asyncio.get_running_loop().create_task(upstream.reach(fail_first))
    for round_number in range(1, 4):
        while asked.times < round_number:
            await asyncio.sleep(0)
        upstream.set_awake(is_awake=True)
    assert await waiting == "/a"


async def test_other_errors_pass() -> None:
    """What the server says otherwise is no reason to wake it."""
    asked = Asked()

    async def refuse(path: str) -> str:
        raise PostgresError({"C": "28P01", "M": "no"})

    with pytest.raises(PostgresError):
        await Upstream("/a", is_awake=True, ask_to_wake=asked).reach(refuse)
    assert asked.times == 0


async def test_failure() -> None:
    """When it will not come back, everybody is told why, without asking."""
    asked = Asked()
    upstream = Upstream("/a", is_awake=False, ask_to_wake=asked)
    waiting = asyncio.get_running_loop().create_task(upstream.reach(dial))
    await settle()
    upstream.set_awake(is_awake=False, failure="disk full")
    for attempt in (waiting, asyncio.get_running_loop().create_task(upstream.reach(dial))):
        with pytest.raises(Unreachable, match="disk full"):
            await attempt
    assert asked.times == 1
    upstream.set_awake(is_awake=True)
    assert await upstream.reach(dial) == "/a"


async def test_moved_while_waiting() -> None:
    """Who waits while another cluster is put in place goes on to that one."""
    upstream = Upstream("/a", is_awake=False, ask_to_wake=Asked())
    waiting = asyncio.get_running_loop().create_task(upstream.reach(dial))
    await settle()
    upstream.move("/b", is_awake=True)
    assert await waiting == "/b"


async def test_cancelled_waiter() -> None:
    """A waiter that gives up does not keep the others from going on."""
    upstream = Upstream("/a", is_awake=False, ask_to_wake=Asked())
    first, second = (asyncio.get_running_loop().create_task(upstream.reach(dial)) for _ in range(2))
    await settle()
    first.cancel()
    await settle()
    upstream.set_awake(is_awake=True)
    assert await second == "/a"
    assert first.cancelled()
