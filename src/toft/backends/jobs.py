"""The daemon's side of job processes: sends chores to lanes, starts processes when they are needed.

A job process speaks on one socket, its stdin, so that whatever a library prints cannot disturb it. It ends
when the socket closes: with us, however we end. One that dies takes its chores with it; their callers get an
error, and the next chore starts another process.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import msgspec

from toft.backends.chores import Chore, Finished, LaneName, Progress, Reply, Request, decode, encode
from toft.errors import catalogue as catalogue  # every error must be known to be made again from its JSON
from toft.errors.backend import BackendFailed
from toft.errors.daemon import DaemonStopping
from toft.errors.shape import from_json
from toft.host import processes
from toft.telemetry.events import JobDied
from toft.telemetry.log import Telemetry

_LONGEST_LINE = 64 << 20
_decoder = msgspec.json.Decoder(Reply)

type Report = Callable[[str], None]


class Lane(msgspec.Struct, frozen=True):
    """How many processes a lane may have, and how long one stays that has nothing to do (None: forever)."""

    most: int
    idle_seconds: float | None


LANES: dict[LaneName, Lane] = {
    "clone": Lane(most=1, idle_seconds=None),
    "snap": Lane(most=2, idle_seconds=300),
    "sweep": Lane(most=1, idle_seconds=60),
    "plan": Lane(most=1, idle_seconds=60),
    "build": Lane(most=2, idle_seconds=60),
    "push": Lane(most=8, idle_seconds=60),
}


class JobLost(Exception):
    """A job process died with a chore in hand."""


class Jobs:
    """All lanes. `argv` starts a job process; the lane's name and a number are added to it."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], log: Path, tell: Telemetry) -> None:
        self._argv = tuple(argv)
        self._env = dict(env)
        self._log = log
        self._tell = tell
        self._lanes: dict[LaneName, list[_Job]] = {name: [] for name in LANES}
        self._is_closed = False
        #: called when a job process died with a chore in hand
        self.lost: Callable[[LaneName], None] = lambda _lane: None

    async def run[T](self, chore: Chore, answer: type[T], report: Report | None = None) -> T:
        """Have a chore done. Raises what it raised.

        When its process dies it is begun once more by another: chores can be repeated. A caller that is
        cancelled leaves the chore to its process; nobody hears of its end.
        """
        for _ in range(2):
            if self._is_closed:
                raise DaemonStopping
            with suppress(JobLost):
                return decode(await self._job(chore.lane).ask(chore, report), answer)
        raise BackendFailed(cause=f"a job process of the lane `{chore.lane}` ended twice")

    def warm(self, lane: LaneName) -> None:
        """Start the lane's first process now, for a caller who will come."""
        if not self._lanes[lane]:
            self._start(lane, 0)

    def pids(self) -> list[int]:
        """The processes there are."""
        return [job.pid for jobs in self._lanes.values() for job in jobs]

    async def close(self) -> None:
        """End all job processes; they clean up what they are at."""
        self._is_closed = True
        jobs = [job for jobs in self._lanes.values() for job in jobs]
        for job in jobs:
            job.hang_up()
        await asyncio.gather(*(job.gone() for job in jobs))

    def _job(self, lane: LaneName) -> _Job:
        jobs = [job for job in self._lanes[lane] if not job.is_over]
        idlest = min(jobs, key=lambda job: job.load, default=None)
        if idlest is None or (idlest.load and len(jobs) < LANES[lane].most):
            taken = {job.number for job in jobs}
            return self._start(lane, next(n for n in range(LANES[lane].most) if n not in taken))
        return idlest

    def _start(self, lane: LaneName, number: int) -> _Job:
        job = _Job([*self._argv, lane, str(number)], self._env, self._log, LANES[lane].idle_seconds)
        job.number = number

        def ended(lost: int) -> None:
            self._lanes[lane].remove(job)
            if lost and not self._is_closed:
                self._tell(JobDied(lane=lane, jobs=lost))
                self.lost(lane)

        job.open(ended)
        self._lanes[lane].append(job)
        return job


class _Pending(msgspec.Struct):
    """A chore that was sent."""

    result: asyncio.Future[msgspec.Raw]
    report: Report | None


class _Job(asyncio.Protocol):
    """One job process, spoken to over a socket pair."""

    number = 0

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], log: Path, idle_seconds: float | None
    ) -> None:
        self._idle_seconds = idle_seconds
        self._idle: asyncio.TimerHandle | None = None
        self._pending: dict[int, _Pending] = {}
        self._seq = 0
        self._received = bytearray()
        self._loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with theirs:
            output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                self.pid = processes.spawn(argv, env, output=output, stdin=theirs.fileno())
            except BaseException:
                ours.close()
                raise
            finally:
                os.close(output)
        self._process = processes.identify(self.pid)
        processes.reap_when_gone(self.pid)
        ours.setblocking(False)
        self._socket = ours
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self.is_over = False
        self._ended: Callable[[int], None] = lambda _: None

    def open(self, ended: Callable[[int], None]) -> None:
        """Begin to listen; `ended` is told how many chores were lost when the process has gone."""
        self._ended = ended
        self._opening = self._loop.create_task(self._loop.create_connection(lambda: self, sock=self._socket))

    @property
    def load(self) -> int:
        return len(self._pending)

    async def ask(self, chore: Chore, report: Report | None) -> msgspec.Raw:
        self._seq += 1
        seq = self._seq
        result: asyncio.Future[msgspec.Raw] = self._loop.create_future()
        self._pending[seq] = _Pending(result, report)
        if self._idle is not None:
            self._idle.cancel()
        self._send(encode(Request(seq, chore)) + b"\n")
        return await result

    def hang_up(self) -> None:
        self.is_over = True
        if self._transport is not None:
            self._transport.close()

    async def gone(self) -> None:
        """Wait until the process has ended; one that does not is killed after a while."""
        if self._process is None:
            return
        try:
            async with asyncio.timeout(10):
                await processes.wait_gone(self._process)
        except TimeoutError:
            processes.kill_tree(self._process)
            await processes.wait_gone(self._process)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.is_over:
            transport.close()
            return
        for line in self._unsent:
            self._transport.write(line)
        self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > _LONGEST_LINE:
            self.hang_up()
        while (end := self._received.find(b"\n")) >= 0:
            line = bytes(self._received[:end])
            del self._received[: end + 1]
            self._hear(_decoder.decode(line))

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over = True
        if self._idle is not None:
            self._idle.cancel()
        lost, self._pending = self._pending, {}
        for pending in lost.values():
            if not pending.result.done():
                pending.result.set_exception(JobLost())
        self._ended(len(lost))

    def _send(self, line: bytes) -> None:
        if self._transport is None:
            self._unsent.append(line)
        else:
            self._transport.write(line)

    def _hear(self, reply: Reply) -> None:
        pending = self._pending.get(reply.seq)
        if pending is None:
            return
        if isinstance(reply, Progress):
            if pending.report is not None:
                pending.report(reply.text)
            return
        del self._pending[reply.seq]
        if not self._pending and self._idle_seconds is not None:
            self._idle = self._loop.call_later(self._idle_seconds, self.hang_up)
        if pending.result.done():
            return
        if isinstance(reply, Finished):
            pending.result.set_result(reply.answer)
        else:
            pending.result.set_exception(from_json(reply.problem))
