"""The gateway's workers: started when they are needed, adopted when they live, replaced when they die.

All together they are the `Gateway` that backends ask. A backend goes to the worker that serves the fewest and
stays there; when its worker dies it is attached to another by the loop, on the same ports.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from toft.backends.backend import Attachment
from toft.backends.context import Tasks
from toft.backends.gateway import WorkerLost
from toft.backends.places import Places
from toft.daemon.link import Answer, Link
from toft.errors.backend import BackendFailed, PortTaken
from toft.errors.daemon import DaemonStopping
from toft.errors.shape import ToftError
from toft.host import processes
from toft.host.processes import Process
from toft.ids import BackendId
from toft.protocol.worker import (
    AskLog,
    AskUsage,
    Attach,
    BackendSpec,
    BackendUsage,
    Detach,
    Failed,
    Log,
    LogLine,
    Relisten,
    SetAwake,
    Shutdown,
    ToWorker,
    Usage,
    Warm,
)
from toft.store.connection import Store
from toft.telemetry.events import WorkerDied, WorkerStarted
from toft.telemetry.log import Telemetry

#: A worker that does not listen by then is killed.
START_SECONDS = 20.0
#: So long an adopted worker may take to answer the greeting.
HELLO_SECONDS = 5.0
#: A worker that answers no request for so long hangs.
ANSWER_SECONDS = 20.0
#: After a worker failed to start, the next try waits so long.
REST_SECONDS = 1.0


class Worker(msgspec.Struct):
    """One worker that answers. is_current: it runs our version; others get no new backends."""

    number: int
    process: Process
    link: Link
    is_current: bool
    backends: set[str]


class Workers:
    """The gateway. `see` is told what becomes of a backend's attachment, `wake` of notices."""

    def __init__(
        self,
        *,
        argv: Sequence[str],
        env: Mapping[str, str],
        version: str,
        most: int,
        uid: int | None,
        places: Places,
        store: Store,
        tasks: Tasks,
        tell: Telemetry,
    ) -> None:
        self._argv = tuple(argv)
        self._env = dict(env)
        self._version = version
        self._most = most
        self._uid = uid
        self._places = places
        self._store = store
        self._tasks = tasks
        self._tell = tell
        self._workers: dict[int, Worker] = {}
        self._starting: dict[int, asyncio.Task[None]] = {}
        self._came = asyncio.Event()
        self._is_closed = False
        self.see: Callable[[BackendId, Attachment], None] = lambda _id, _attachment: None
        self.wake: Callable[[BackendId], None] = lambda _id: None

    # What backends ask.

    async def attach(self, spec: BackendSpec) -> None:
        worker = self._server(BackendId(spec.backend_id)) or await self._idlest()
        answer = await self._ask(worker, lambda seq: Attach(seq, spec))
        if isinstance(answer, Failed):
            raise _refusal(answer, spec.http_port, spec.db_port)
        worker.backends.add(spec.backend_id)
        self._want(1 + sum(len(worker.backends) for worker in self._workers.values()))

    async def detach(self, backend_id: BackendId) -> None:
        worker = self._server(backend_id)
        if worker is None:
            return
        await self._ask(worker, lambda seq: Detach(seq, backend_id))
        worker.backends.discard(backend_id)
        if not worker.is_current and not worker.backends:
            self._tasks.start(self._retire(worker), f"retire worker {worker.number}")

    async def relisten(self, backend_id: BackendId, http_port: int, db_port: int) -> None:
        worker = self._server(backend_id)
        if worker is None:
            raise WorkerLost
        answer = await self._ask(worker, lambda seq: Relisten(seq, backend_id, http_port, db_port))
        if isinstance(answer, Failed):
            raise _refusal(answer, http_port, db_port)

    async def set_awake(self, backend_id: BackendId, *, is_awake: bool, failure: str | None = None) -> None:
        worker = self._server(backend_id)
        if worker is None:
            raise WorkerLost
        answer = await self._ask(worker, lambda seq: SetAwake(seq, backend_id, is_awake, failure))
        if isinstance(answer, Failed):
            worker.backends.discard(backend_id)
            raise WorkerLost

    async def log(self, backend_id: BackendId) -> list[LogLine]:
        worker = self._server(backend_id)
        if worker is None:
            raise WorkerLost
        answer = await self._ask(worker, lambda seq: AskLog(seq, backend_id))
        return answer.lines if isinstance(answer, Log) else []

    async def warm(self, backend_id: BackendId) -> None:
        worker = self._server(backend_id)
        if worker is not None:
            await self._ask(worker, lambda seq: Warm(seq, backend_id))

    async def usage(self) -> dict[str, BackendUsage]:
        answers = await asyncio.gather(*(self._usage_of(worker) for worker in [*self._workers.values()]))
        return {backend_id: used for answer in answers for backend_id, used in answer.items()}

    # What the daemon asks.

    def start_first(self) -> None:
        """Have a worker ready before anybody needs one."""
        self._want(1)

    async def adopt(self) -> dict[str, tuple[int, int]]:
        """Take over the workers that still live; what they serve, with its ports."""
        rows = self._store.rows("SELECT number, pid, pid_ticks FROM worker")
        found = await asyncio.gather(
            *(self._adopt(number, Process(pid=pid, started_at_ticks=ticks)) for number, pid, ticks in rows)
        )
        self._end_unrecorded()
        for worker in [*self._workers.values()]:
            if not worker.is_current and not worker.backends:
                await self._retire(worker)
        return {backend_id: ports for attached in found for backend_id, ports in attached.items()}

    def count(self) -> int:
        """How many answer."""
        return len(self._workers)

    async def close(self, *, keep_busy: bool) -> None:
        """End the workers. keep_busy: those that serve somebody stay, for the next daemon."""
        self._is_closed = True
        starting = list(self._starting.values())
        for task in starting:
            task.cancel()
        if starting:
            await asyncio.wait(starting)
        staying = [worker for worker in self._workers.values() if keep_busy and worker.backends]
        for worker in staying:
            worker.link.close()
        leaving = [worker for worker in self._workers.values() if worker not in staying]
        await asyncio.gather(*(self._retire(worker) for worker in leaving))

    # Inside.

    async def _ask(self, worker: Worker, make: Callable[[int], ToWorker]) -> Answer:
        """Ask a worker. One that does not answer is ended: its backends are better off with another."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await worker.link.ask(make)
        except TimeoutError:
            processes.kill_tree(worker.process)
            raise WorkerLost from None

    def _server(self, backend_id: str) -> Worker | None:
        for worker in self._workers.values():
            if backend_id in worker.backends:
                return worker
        return None

    async def _idlest(self) -> Worker:
        """The current worker with the fewest backends; waits for one to come up."""
        while True:
            current = [worker for worker in self._workers.values() if worker.is_current]
            if current:
                return min(current, key=lambda worker: len(worker.backends))
            if self._is_closed:
                raise DaemonStopping
            self._want(1)
            self._came.clear()
            try:
                async with asyncio.timeout(START_SECONDS + REST_SECONDS):
                    await self._came.wait()
            except TimeoutError:
                raise BackendFailed(cause="no gateway worker comes up") from None

    def _want(self, count: int) -> None:
        """Have so many workers, within the limit, one more at a time."""
        current = sum(worker.is_current for worker in self._workers.values())
        if self._is_closed or self._starting or current >= min(count, self._most):
            return
        number = next(n for n in range(len(self._workers) + 1) if n not in self._workers)
        self._starting[number] = self._tasks.start(self._start(number), f"start worker {number}")

    async def _start(self, number: int) -> None:
        try:
            await self._launch(number)
        except (OSError, TimeoutError, WorkerLost) as error:
            self._tell.fault(f"worker {number}", error)
            await asyncio.sleep(REST_SECONDS)
        finally:
            del self._starting[number]
            self._came.set()

    async def _launch(self, number: int) -> None:
        path = self._places.worker_socket(number)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if self._uid is not None:
            os.chown(path.parent, self._uid, self._uid)
        path.unlink(missing_ok=True)
        output = os.open(self._places.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            argv = [*self._argv, "--socket", str(path), "--index", str(number)]
            pid = processes.spawn(argv, self._env, output=output)
        finally:
            os.close(output)
        processes.reap_when_gone(pid)
        launched = processes.identify(pid)
        if launched is None:
            raise WorkerLost
        try:
            async with asyncio.timeout(START_SECONDS):
                link = await self._dial(number, launched)
                greeting = await link.hello(self._version)
            process = processes.inside(pid)
            if process is None:
                raise WorkerLost
            self._record(number, process)
        except BaseException:
            processes.kill_tree(launched)
            await processes.wait_gone(launched)
            self._forget(number)
            raise
        self._welcome(Worker(number, process, link, greeting.version == self._version, set()), adopted=False)

    async def _dial(self, number: int, process: Process) -> Link:
        """Connect to a worker that is coming up: that it listens can only be tried, its death is known."""
        pause = 0.005
        while True:
            with suppress(FileNotFoundError, ConnectionRefusedError):
                return await self._open(number)
            if not processes.is_alive(process):
                raise WorkerLost
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.05)

    async def _open(self, number: int) -> Link:
        return await Link.open(
            self._places.worker_socket(number),
            lambda backend_id: self.wake(BackendId(backend_id)),
            lambda: self._lost(number),
        )

    async def _adopt(self, number: int, process: Process) -> dict[str, tuple[int, int]]:
        if processes.is_alive(process):
            with suppress(OSError, TimeoutError, WorkerLost):
                async with asyncio.timeout(HELLO_SECONDS):
                    link = await self._open(number)
                    greeting = await link.hello(self._version)
                is_current = greeting.version == self._version
                worker = Worker(number, process, link, is_current, set(greeting.backends))
                self._welcome(worker, adopted=True)
                return greeting.backends
            processes.kill_tree(process)
        self._forget(number)
        return {}

    def _end_unrecorded(self) -> None:
        """A worker whose daemon was killed before it wrote it down serves nobody."""
        known = {worker.process.pid for worker in self._workers.values()}
        known |= {above.pid for pid in known if (above := processes.parent(pid)) is not None}  # launchers
        mark = os.fsencode(self._places.worker_socket(0)).removesuffix(b"0.sock")
        for pid in processes.all_pids():
            with suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                if mark not in line or pid in known:
                    continue
                process = processes.identify(pid)
                if process and any(word.startswith(mark) for word in line.split(b"\0")):
                    processes.kill_tree(process)

    def _welcome(self, worker: Worker, *, adopted: bool) -> None:
        self._workers[worker.number] = worker
        self._tell(WorkerStarted(worker=worker.number, pid=worker.process.pid, adopted=adopted))
        self._came.set()

    def _lost(self, number: int) -> None:
        """Its connection ended. A worker that hung up but lives is ended: nothing is served twice."""
        worker = self._workers.pop(number, None)
        if worker is None or self._is_closed:
            return
        self._tell(WorkerDied(worker=number, backends=len(worker.backends)))
        processes.kill_tree(worker.process)
        self._forget(number)
        for backend_id in worker.backends:
            self.see(BackendId(backend_id), Attachment.NONE)
        self._want(1)

    async def _retire(self, worker: Worker) -> None:
        """Ask it to end, and see that it does."""
        self._workers.pop(worker.number, None)
        with suppress(WorkerLost):
            await self._ask(worker, Shutdown)
        worker.link.close()
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                await processes.wait_gone(worker.process)
        except TimeoutError:
            processes.kill_tree(worker.process)
            await processes.wait_gone(worker.process)
        self._places.worker_socket(worker.number).unlink(missing_ok=True)
        self._forget(worker.number)

    async def _usage_of(self, worker: Worker) -> dict[str, BackendUsage]:
        answer = await self._ask(worker, AskUsage)
        return answer.backends if isinstance(answer, Usage) else {}

    def _record(self, number: int, process: Process) -> None:
        with self._store.transaction() as tx:
            tx.execute(
                "INSERT OR REPLACE INTO worker (number, pid, pid_ticks) VALUES (?, ?, ?)",
                number,
                process.pid,
                process.started_at_ticks,
            )

    def _forget(self, number: int) -> None:
        with self._store.transaction() as tx:
            tx.execute("DELETE FROM worker WHERE number = ?", number)


def _refusal(answer: Failed, http_port: int, db_port: int) -> ToftError:
    if answer.code == "port-taken":
        named = [port for port in (http_port, db_port) if str(port) in answer.message]
        return PortTaken(port=named[0] if named else http_port)
    return BackendFailed(cause=answer.message)
