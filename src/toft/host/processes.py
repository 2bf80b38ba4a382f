"""Processes that outlive us: in a session of their own, known by pid and start time, watched by pidfd.

A pid alone may be reused; pid and start time together name one process until the next boot. So a record
of both, written by a daemon that was killed, is enough for the next one to adopt the process or to see
that it is gone.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from toft.host.limits import Limits, impose_memory, inherited

#: The short name of bubblewrap's process that waits outside.
LAUNCHER = "bwrap"


class Process(msgspec.Struct, frozen=True):
    """One process of this boot. `started_at_ticks` is field 22 of /proc/PID/stat."""

    pid: int
    started_at_ticks: int


def spawn(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    output: int,
    limits: Limits | None = None,
    stdin: int | None = None,
    keep: Iterable[int] = (),
) -> int:
    """Start `argv` in a session and process group of its own, and return its pid.

    output: descriptor that becomes both stdout and stderr. stdin: a descriptor, /dev/null without one.
    keep: inheritable descriptors that the child gets under their own numbers. posix_spawn, because
    a fork of a large Python process costs milliseconds; whoever needs another user puts setpriv first.
    """
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    actions: list[tuple[int, int, int]] = [
        (os.POSIX_SPAWN_DUP2, null if stdin is None else stdin, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
    ]
    actions += [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in keep]
    try:
        with inherited(limits):
            pid = os.posix_spawn(argv[0], list(argv), dict(env), file_actions=actions, setsid=True)
    except BlockingIOError:
        # In a user namespace the number of processes holds for us too, who have many. Better none then.
        if limits is None or limits.processes is None:
            raise
        fewer = msgspec.structs.replace(limits, processes=None)
        return spawn(argv, env, output=output, limits=fewer, stdin=stdin, keep=keep)
    finally:
        os.close(null)
    impose_memory(limits, pid)
    return pid


async def complete(argv: Sequence[str], env: Mapping[str, str], *, output: int) -> int:
    """Run a command to its end and return its exit status; kill it and all of its group when cancelled."""
    pid = spawn(argv, env, output=output)
    pidfd = os.pidfd_open(pid)
    try:
        await _readable(pidfd)
    except BaseException:
        kill_group(pid)
        raise
    finally:
        os.close(pidfd)
        _, status = os.waitpid(pid, 0)  # noqa: ASYNC222 - it has ended, or was killed just now
    return os.waitstatus_to_exitcode(status)


def reap_when_gone(pid: int) -> None:
    """Collect the exit status of our child `pid` as soon as there is one, so that no zombie stays.

    Uses the running event loop and holds nothing but a descriptor in it.
    """
    loop = asyncio.get_running_loop()
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        reap(pid)
        return

    def collect() -> None:
        loop.remove_reader(pidfd)
        os.close(pidfd)
        reap(pid)

    loop.add_reader(pidfd, collect)


def identify(pid: int) -> Process | None:
    """The living process that has this pid now. A zombie is not living."""
    fields = _read_stat(pid)
    if fields is None or fields[0] in "ZX":
        return None
    return Process(pid=pid, started_at_ticks=int(fields[19]))


def is_alive(process: Process) -> bool:
    """Whether this very process still runs. Collects it if it is a dead child of ours."""
    if _is_current(process):
        return True
    reap(process.pid)
    return False


async def wait_gone(process: Process) -> None:
    """Return when the process has ended; at once if it has already. Safe to cancel."""
    pidfd = open_pidfd(process)
    if pidfd is None:
        return
    try:
        await _readable(pidfd)
    finally:
        os.close(pidfd)
    reap(process.pid)


def open_pidfd(process: Process) -> int | None:
    """A descriptor that becomes readable when the process ends, or None when it has ended."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    if not _is_current(process):
        os.close(pidfd)
        reap(process.pid)
        return None
    return pidfd


def send(process: Process, signum: signal.Signals) -> bool:
    """Send a signal to this process and to no other. False when it is gone."""
    pidfd = open_pidfd(process)
    if pidfd is None:
        return False
    try:
        signal.pidfd_send_signal(pidfd, signum)
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)
    return True


def kill_group(pid: int) -> None:
    """SIGKILL the process group that `spawn` made for `pid`."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def kill_tree(process: Process) -> list[Process]:
    """SIGKILL a process and everything under it; all that were told, for who wants to see them go.

    It is stopped first, so that it cannot have more children while they are counted.
    """
    if not send(process, signal.SIGSTOP):
        return []
    family = [process, *descendants(process.pid)]
    for member in family:
        send(member, signal.SIGKILL)
    return family


def children(pid: int) -> list[Process]:
    """The living children of a process."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        pids = [int(word) for word in text.split()]
    except (FileNotFoundError, ProcessLookupError):
        pids = [other for other in all_pids() if (stat := _read_stat(other)) and int(stat[1]) == pid]
    return [child for child in map(identify, pids) if child is not None]


def inside(launched: int) -> Process | None:
    """The program itself: what was started, or the only child of a launcher that waits for it outside."""
    found = identify(launched)
    if found is not None and name(launched) == LAUNCHER:
        return next(iter(children(launched)), None)
    return found


def parent(pid: int) -> Process | None:
    """The living parent of a process."""
    fields = _read_stat(pid)
    return identify(int(fields[1])) if fields is not None else None


def name(pid: int) -> str | None:
    """The short name of a process, as `ps` shows it."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")
    except (FileNotFoundError, ProcessLookupError):
        return None


def state(pid: int) -> str | None:
    """The letter for what a process is at, as `ps` shows it (T: stopped); None when there is none."""
    fields = _read_stat(pid)
    return fields[0] if fields is not None else None


def descendants(pid: int) -> list[Process]:
    """All living processes below `pid`, nearest first."""
    found: list[Process] = []
    queue = [pid]
    while queue:
        for child in children(queue.pop(0)):
            found.append(child)
            queue.append(child.pid)
    return found


def all_pids() -> list[int]:
    """Every pid that /proc shows us."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names only, and fast


def working_in(directory: Path) -> list[Process]:
    """Living processes whose working directory is `directory`, in whatever mount namespace they are.

    Finds what is left of a tree whose head was killed: orphans have no parent to be found by.
    """
    try:
        wanted = directory.stat()
    except FileNotFoundError:
        return []
    found: list[Process] = []
    for pid in all_pids():
        with suppress(OSError):
            there = Path(f"/proc/{pid}/cwd").stat()
            if (there.st_dev, there.st_ino) == (wanted.st_dev, wanted.st_ino):
                process = identify(pid)
                if process is not None:
                    found.append(process)
    return found


class Finished(msgspec.Struct, frozen=True):
    """What a short command answered."""

    status: int
    output: str
    errors: str


def run(argv: Sequence[str], env: Mapping[str, str] | None = None, *, seconds: float = 60) -> Finished:
    """Run a short command of the system to its end. Not for anything that a tenant can slow down."""
    try:
        done = subprocess.run(
            list(argv),
            env=dict(env) if env is not None else {"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finished(status=127, output="", errors=str(error))
    return Finished(
        status=done.returncode,
        output=done.stdout.decode(errors="replace"),
        errors=done.stderr.decode(errors="replace"),
    )


def wait_gone_blocking(process: Process, seconds: float) -> bool:
    """`wait_gone` for code without an event loop. False when the time is over."""
    pidfd = open_pidfd(process)
    if pidfd is None:
        return True
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        gone = bool(poll.poll(seconds * 1000))
    finally:
        os.close(pidfd)
    if gone:
        reap(process.pid)
    return gone


def _is_current(process: Process) -> bool:
    now = identify(process.pid)
    return now is not None and now.started_at_ticks == process.started_at_ticks


def _read_stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the third (state) on."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()


def reap(pid: int) -> None:
    """Collect the exit status of a dead child of ours, so that it is no zombie. Nothing for others."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(fd, tell)
    try:
        await ready
    finally:
        loop.remove_reader(fd)
