"""Tasks that nobody awaits are kept, their faults told, and what should go on for ever does."""

from __future__ import annotations

import asyncio

import pytest

from toft.backends import context
from toft.backends.context import Tasks
from toft.telemetry.events import Event, Fault
from toft.telemetry.log import Telemetry


async def test_a_fault_is_told() -> None:
    """A task that fails is reported with its name, and no other is touched."""
    told: list[Event] = []
    tasks = Tasks(Telemetry(told.append))

    async def fail() -> None:
        raise ValueError("broken")

    task = tasks.start(fail(), "the task")
    await asyncio.wait([task])
    await asyncio.sleep(0)
    [fault] = told
    assert isinstance(fault, Fault)
    assert fault.where.startswith("the task (test_tasks.py:")
    assert fault.cause == "ValueError: broken"
    await tasks.close()


async def test_what_goes_on_for_ever_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a fault it is reported and begun again."""
    monkeypatch.setattr(context, "REST_SECONDS", 0.0)
    told: list[Event] = []
    tasks = Tasks(Telemetry(told.append))
    begun = asyncio.Event()
    turns: list[int] = []

    async def work() -> None:
        turns.append(len(turns))
        if len(turns) < 3:
            raise ValueError("a bad turn")
        begun.set()
        await asyncio.Event().wait()

    tasks.keep(work, "the loop")
    await begun.wait()
    assert len(told) == 2
    await tasks.close()


async def test_close_ends_all() -> None:
    """Also those that begin others while they end."""
    tasks = Tasks(Telemetry())
    ended: list[str] = []

    async def late() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("late")

    async def first() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            tasks.start(late(), "late")
            ended.append("first")

    tasks.start(first(), "first")
    await asyncio.sleep(0)
    await tasks.close()
    assert "first" in ended
