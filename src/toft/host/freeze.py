"""Stops a process and its children for a moment, and sees that they go on, whatever happens to us.

A frozen tree is what a kill -9 would leave: nothing is written any more, and no single write is torn. The
head is stopped first, so that it has no more children while they are stopped one by one (those that lead a
session of their own are reached by no group signal). A watchdog, forked before, thaws the tree when we die or
take too long.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from toft.host import processes
from toft.host.processes import Process

#: The watchdog waits a little longer than whoever froze the tree may take.
_SLACK_SECONDS = 1.0


class FrozenTooLong(Exception):
    """What was to be done while the tree stood still takes longer than it may."""


class Gone(Exception):
    """The process to be frozen has ended."""


class Frozen:
    """A tree that stands still. `check` often, and once more when all is done."""

    def __init__(self, seconds: float) -> None:
        self._since = time.monotonic()
        self._seconds = seconds
        #: how long it stood still; known when it goes on
        self.lasted_seconds = 0.0

    def check(self) -> None:
        """Raises `FrozenTooLong`. What was read while this did not raise was read from a still tree."""
        if time.monotonic() - self._since > self._seconds:
            raise FrozenTooLong

    def went_on(self) -> None:
        """It was thawed."""
        self.lasted_seconds = time.monotonic() - self._since


@contextmanager
def freeze(head: Process, seconds: float) -> Generator[Frozen]:
    """Keep a process and its children stopped within the block, but never much longer than `seconds`.

    Raises `Gone`. For processes with one thread: it forks.
    """
    guard = _start_watchdog(head, seconds + _SLACK_SECONDS)
    frozen = Frozen(seconds)
    stopped: list[Process] = []
    try:
        stopped.append(head)  # first, so that it goes on also when it does not stop in time
        _stop(head, frozen)
        for child in processes.children(head.pid):
            stopped.append(child)
            processes.send(child, signal.SIGSTOP)
        for child in stopped[1:]:
            _wait_stopped(child, frozen)
        yield frozen
    finally:
        for process in reversed(stopped):
            processes.send(process, signal.SIGCONT)
        frozen.went_on()
        _dismiss(guard)


def thaw(head: Process) -> None:
    """Let a tree go on that somebody who died has left frozen. Harmless to one that runs."""
    for process in (*processes.children(head.pid), head):
        processes.send(process, signal.SIGCONT)


def _stop(head: Process, frozen: Frozen) -> None:
    if not processes.send(head, signal.SIGSTOP):
        raise Gone
    _wait_stopped(head, frozen)
    if not processes.is_alive(head):
        raise Gone


def _wait_stopped(process: Process, frozen: Frozen) -> None:
    """A process that writes just now stops when it has written."""
    while (state := processes.state(process.pid)) is not None and state not in "TtZX":
        frozen.check()
        os.sched_yield()


def _start_watchdog(head: Process, seconds: float) -> tuple[int, int]:
    """A child that thaws the tree unless we tell it not to. Gives its pid and our end of the pipe."""
    theirs, ours = os.pipe()
    pid = os.fork()
    if pid:
        os.close(theirs)
        return pid, ours
    try:
        os.close(ours)
        poll = select.poll()
        poll.register(theirs, select.POLLIN)
        if not poll.poll(seconds * 1000) or not os.read(theirs, 1):
            thaw(head)
    finally:
        os._exit(0)


def _dismiss(guard: tuple[int, int]) -> None:
    pid, ours = guard
    with suppress(BrokenPipeError):  # it has done its work
        os.write(ours, b".")
    os.close(ours)
    os.waitpid(pid, 0)
