"""A process tree that stands still for a moment, whatever becomes of who stopped it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from toft.host import processes
from toft.host.freeze import Frozen, FrozenTooLong, Gone, freeze
from toft.host.processes import Process

#: A head with a child in a session of its own, both counting on a pipe.
TREE = """
import os, sys
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
while True:
    os.write(1, b".")
"""
FREEZER = """
import os, sys
from toft.host import processes
from toft.host.freeze import freeze
with freeze(processes.identify(int(sys.argv[1])), float(sys.argv[2])):
    print("frozen", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def tree() -> Iterator[Process]:
    """A head and one child, both at work."""
    head = subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE)
    assert head.stdout is not None
    head.stdout.read(1)
    found = processes.identify(head.pid)
    assert found is not None
    while not processes.children(head.pid):
        head.stdout.read(1000)
    yield found
    processes.kill_tree(found)
    head.wait()
    head.stdout.close()


def _states(head: Process) -> set[str | None]:
    return {processes.state(one.pid) for one in (head, *processes.children(head.pid))}


def test_all_stand_still_and_go_on(tree: Process) -> None:
    """Within the block head and child are stopped, after it neither is."""
    with freeze(tree, 5) as frozen:
        assert _states(tree) == {"T"}
        frozen.check()
    assert "T" not in _states(tree)
    assert frozen.lasted_seconds > 0


def test_it_goes_on_after_a_fault(tree: Process) -> None:
    """Whatever is raised within the block, the tree goes on."""
    with pytest.raises(ZeroDivisionError), freeze(tree, 5):
        raise ZeroDivisionError
    assert "T" not in _states(tree)


def test_time_is_bounded(tree: Process) -> None:
    """Who takes longer than allowed is told so by `check`."""
    with pytest.raises(FrozenTooLong), freeze(tree, 0) as frozen:
        while True:
            frozen.check()
    assert "T" not in _states(tree)


def test_what_has_ended_cannot_be_frozen() -> None:
    """A process that is gone is told as gone."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    head = processes.identify(gone.pid)
    assert head is not None
    gone.wait()
    with pytest.raises(Gone), freeze(head, 5):
        raise AssertionError


def test_it_goes_on_when_it_does_not_stop_in_time(tree: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that was told to stop, and has not when time is over, is told to go on."""

    def give_up(*_: object) -> None:
        raise FrozenTooLong

    monkeypatch.setattr(Frozen, "check", give_up)
    monkeypatch.setattr(processes, "state", lambda _pid: "R")
    with pytest.raises(FrozenTooLong), freeze(tree, 60):
        raise AssertionError
    monkeypatch.undo()
    assert "T" not in _states(tree)


@pytest.mark.parametrize("seconds", ["60", "0.2"])
def test_the_watchdog_thaws(tree: Process, seconds: str) -> None:
    """When who froze the tree is killed, or hangs for too long, the tree goes on all the same."""
    freezer = subprocess.Popen(
        [sys.executable, "-c", FREEZER, str(tree.pid), seconds],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert freezer.stdout is not None
    assert freezer.stdin is not None
    try:
        assert freezer.stdout.readline() == b"frozen\n"
        if seconds == "60":
            os.kill(freezer.pid, signal.SIGKILL)
        while "T" in _states(tree):
            os.sched_yield()
    finally:
        freezer.kill()
        freezer.wait()
        freezer.stdin.close()
        freezer.stdout.close()
