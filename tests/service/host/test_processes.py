"""Starting, knowing, watching and ending real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from toft.host import processes
from toft.host.limits import Limits, inherited
from toft.host.processes import Process

ENV = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def output(tmp_path: Path) -> Iterator[int]:
    """A file that takes what is said."""
    descriptor = os.open(tmp_path / "output", os.O_RDWR | os.O_CREAT, 0o600)
    yield descriptor
    os.close(descriptor)


def start(script: str, output: int, limits: Limits | None = None) -> Process:
    pid = processes.spawn(["/bin/sh", "-c", script], ENV, output=output, limits=limits)
    found = processes.identify(pid)
    assert found is not None
    return found


async def said(output: int, wanted: int) -> list[str]:
    """The first lines of a process's output; it is known to speak at once."""
    while (text := os.pread(output, 10_000, 0)).count(b"\n") < wanted:
        await asyncio.sleep(0)
    return text.decode().splitlines()


async def test_a_process_has_a_session_and_group_of_its_own(output: int) -> None:
    """So that our end, or a signal from our terminal, does not reach it."""
    process = start("read forever <&1; exec sleep 60", output)
    try:
        assert os.getsid(process.pid) == process.pid
        assert os.getpgid(process.pid) == process.pid
        assert os.getsid(0) != process.pid
    finally:
        processes.kill_group(process.pid)
        await processes.wait_gone(process)


async def test_the_end_of_a_process_is_an_event(output: int) -> None:
    """wait_gone returns when it has ended, and at once for one that is gone; no zombie stays."""
    process = start("sleep 60", output)
    waiting = asyncio.ensure_future(processes.wait_gone(process))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert processes.send(process, signal.SIGTERM)
    await waiting
    await processes.wait_gone(process)
    assert not processes.is_alive(process)
    assert not Path(f"/proc/{process.pid}").exists()


async def test_waiting_can_be_given_up(output: int) -> None:
    """The process goes on, and can be waited for again."""
    process = start("sleep 60", output)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await processes.wait_gone(process)
    assert processes.is_alive(process)
    processes.kill_group(process.pid)
    await processes.wait_gone(process)


async def test_another_process_with_the_same_pid_is_not_mistaken(output: int) -> None:
    """A record of an earlier owner of the pid names nobody: no signal reaches the present one."""
    process = start("sleep 60", output)
    earlier = Process(pid=process.pid, started_at_ticks=process.started_at_ticks - 1)
    assert not processes.is_alive(earlier)
    assert not processes.send(earlier, signal.SIGKILL)
    processes.kill_tree(earlier)
    await processes.wait_gone(earlier)
    assert processes.is_alive(process)
    processes.kill_group(process.pid)
    await processes.wait_gone(process)


async def test_a_dead_child_that_nobody_collected_is_not_alive(output: int) -> None:
    """A zombie is collected on the way."""
    process = start("sleep 60", output)
    os.kill(process.pid, signal.SIGKILL)
    assert await asyncio.to_thread(processes.wait_gone_blocking, process, 10)
    assert not processes.is_alive(process)


async def test_children_are_collected_when_they_end(output: int) -> None:
    """reap_when_gone leaves no zombie and needs no further call."""
    process = start("sleep 60", output)
    processes.reap_when_gone(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{process.pid}").exists():
        assert time.monotonic() < deadline
        await asyncio.sleep(0)


async def test_a_tree_is_killed_with_children_that_left_the_group(output: int) -> None:
    """Postgres's backends call setsid; a signal to the group would miss them."""
    process = start("setsid sh -c 'sleep 60 & echo $!; wait' & echo $!; sleep 60", output)
    await said(output, 2)
    family = processes.descendants(process.pid)
    assert len(family) >= 3
    processes.kill_tree(process)
    for member in (process, *family):
        await processes.wait_gone(member)
    assert not processes.descendants(process.pid)


async def test_orphans_are_found_by_where_they_work(tmp_path: Path, output: int) -> None:
    """The head of the tree is gone, and with it every parent to find them by."""
    place = tmp_path / "data"
    place.mkdir()
    process = start(f"cd {place}; sleep 60 & echo $!; wait", output)
    await said(output, 1)
    [orphan] = processes.descendants(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    await processes.wait_gone(process)
    assert [found.pid for found in processes.working_in(place)] == [orphan.pid]
    processes.send(orphan, signal.SIGKILL)
    await processes.wait_gone(orphan)
    assert processes.working_in(place) == []


async def test_limits_hold_from_the_first_instruction_and_not_for_us(output: int) -> None:
    """The child has them; we have our own back."""
    limits = Limits(open_files=77, data_bytes=2 << 30, oom_score=321)
    before = processes.run(["/bin/sh", "-c", "ulimit -n; ulimit -d"]).output
    script = "ulimit -c; ulimit -n; ulimit -d; cat /proc/self/oom_score_adj; exec sleep 60"
    process = start(script, output, limits)
    assert await said(output, 4) == ["0", "77", str(2 << 20), "321"]
    processes.kill_group(process.pid)
    await processes.wait_gone(process)
    assert processes.run(["/bin/sh", "-c", "ulimit -n; ulimit -d"]).output == before


async def test_a_memory_limit_below_our_own_use_does_not_stop_us(output: int) -> None:
    """The child gets it all the same, a moment later."""
    script = "while [ $(ulimit -d) = unlimited ]; do :; done; ulimit -d; exec sleep 60"
    process = start(script, output, Limits(data_bytes=8 << 20))
    assert await said(output, 1) == [str(8 << 10)]
    processes.kill_group(process.pid)
    await processes.wait_gone(process)


@pytest.mark.skipif(os.geteuid() == 0, reason="root is exempt")
async def test_a_number_of_processes_that_we_exceed_is_left_out(output: int) -> None:
    """It counts per user: a user with more of them could start nothing at all."""
    process = start("ulimit -u; exec sleep 60", output, Limits(processes=0))
    assert await said(output, 1) != ["0"]
    processes.kill_group(process.pid)
    await processes.wait_gone(process)


def test_limits_are_taken_back_after_a_failed_start() -> None:
    """A command that is not there leaves us as we were."""
    before = processes.run(["/bin/sh", "-c", "ulimit -n"]).output
    with pytest.raises(FileNotFoundError), inherited(Limits(open_files=50)):
        os.posix_spawn("/no/such/command", ["x"], {})
    assert processes.run(["/bin/sh", "-c", "ulimit -n"]).output == before


async def test_a_cancelled_command_is_ended(output: int) -> None:
    """`complete` kills what it started, and everything that this started."""
    work = asyncio.ensure_future(
        processes.complete(["/bin/sh", "-c", "sleep 60 & echo $!; wait"], ENV, output=output)
    )
    await asyncio.sleep(0)
    [line] = await said(output, 1)
    child = processes.identify(int(line))
    assert child is not None
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await processes.wait_gone(child)


async def test_a_command_tells_its_status(output: int) -> None:
    """As shells do; a signal is a negative number."""
    assert await processes.complete(["/bin/sh", "-c", "exit 7"], ENV, output=output) == 7
    assert await processes.complete(["/bin/sh", "-c", "kill -9 $$"], ENV, output=output) == -9


def test_a_short_command_that_is_missing_answers_so() -> None:
    """No exception: whoever probes wants to know, not to catch."""
    assert processes.run(["/no/such/command"]).status == 127
