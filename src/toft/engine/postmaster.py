"""Start, watch, stop and adopt postmasters.

A postmaster is started by posix_spawn in a session of its own, writes to a log file of its own and is ready
when the log says so: inotify tells of each line, a pidfd of an early death, and nothing is asked twice. A
pipe instead of the file would tie it to a daemon that may die. What is returned, pid and start time, is
enough for a later daemon to adopt it.

Behind bubblewrap the server is process 1 of its namespace: whoever kills it kills all of its backends, also
those that run a query, and the launcher that waits outside ends with it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from toft.engine import conf
from toft.engine.bootstrap import SUPERUSER
from toft.engine.marks import make_verifier
from toft.engine.prepare import Engine
from toft.errors.backend import BackendFailed
from toft.host import probe, processes
from toft.host.confine import Confinement, Method, confine
from toft.host.files import remove_tree
from toft.host.limits import Limits
from toft.host.processes import Process
from toft.host.watch import Watch, first_readable
from toft.pg.connection import connect
from toft.pg.quote import identifier, literal
from toft.world import Entropy, SystemEntropy

READY = b"database system is ready to accept connections"
#: Crash recovery of a grown cluster takes its time.
START_SECONDS = 60.0
FAST_SECONDS = 10.0
IMMEDIATE_SECONDS = 5.0


class PostmasterSpec(msgspec.Struct, frozen=True):
    """Everything about one start.

    uid: owner of the data directory, when we are root. socket_gid: group that may connect, besides it.
    dies_with_us: end when the thread that starts it ends; not with bubblewrap.
    settings: further ones, which win over all others.
    """

    engine: Engine
    data_dir: Path
    socket_dir: Path
    log_path: Path
    uid: int | None
    confinement: Method
    socket_gid: int | None = None
    durable: bool = False
    dies_with_us: bool = False
    max_connections: int = 40
    memory_bytes: int = 1 << 30
    settings: Mapping[str, str] = {}

    @property
    def socket_path(self) -> Path:
        """Where clients connect."""
        return self.socket_dir / f".s.PGSQL.{conf.PORT}"


class Running(Process, frozen=True):
    """A postmaster: its pid on the host and its start time. A record of it survives the daemon."""


async def start(spec: PostmasterSpec) -> Running:
    """Start a postmaster and return when it accepts connections.

    Nothing may run on this data directory. Raises BackendFailed with the log's own words, and nothing is
    left running then; the same when the task is cancelled.
    """
    await _forget_crash(spec.data_dir)
    _make_socket_dir(spec)
    log = os.open(spec.log_path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return await _launch(spec, log)
    except BaseException:
        remove_tree(spec.socket_dir)
        raise
    finally:
        os.close(log)


async def _launch(spec: PostmasterSpec, log: int) -> Running:
    seen = os.lseek(log, 0, os.SEEK_END)
    with Watch(spec.log_path) as watch:
        launched = processes.spawn(
            command_line(spec), spec.engine.environment(), output=log, limits=_limits(spec)
        )
        try:
            async with asyncio.timeout(START_SECONDS):
                await _ready(launched, watch, log, seen)
            running = _find(launched)
        except BaseException as error:
            _abandon(launched)
            if isinstance(error, TimeoutError):
                raise BackendFailed(cause=f"it was not ready within {START_SECONDS:.0f} seconds") from None
            raise
        processes.reap_when_gone(launched)
    return running


def _abandon(launched: int) -> None:
    """Kill what was started, and see it go: its folders are about to be removed."""
    head = processes.identify(launched)
    family = processes.kill_tree(head) if head is not None else []
    for member in family:
        processes.wait_gone_blocking(member, IMMEDIATE_SECONDS)
    processes.reap(launched)


def command_line(spec: PostmasterSpec) -> list[str]:
    """argv of the postmaster behind its walls."""
    begin = conf.Start(
        data_dir=str(spec.data_dir),
        socket_dir=str(spec.socket_dir),
        max_connections=spec.max_connections,
        is_durable=spec.durable,
        settings={**spec.engine.conf, **spec.settings},
    )
    around = walls(spec.engine, spec.confinement, spec.uid, [spec.data_dir, spec.socket_dir])
    around = msgspec.structs.replace(around, dies_with_parent=spec.dies_with_us)
    return confine(around, conf.command_line(str(spec.engine.bin_dir / "postgres"), begin))


def walls(engine: Engine, method: Method, uid: int | None, writable: Sequence[Path]) -> Confinement:
    """What a program of this engine sees: its binaries, the system's libraries, and what it may write to."""
    seen = engine.read_only
    return Confinement(
        method=method,
        uid=uid,
        read_only=tuple(str(path) for path in seen if not path.is_symlink()),
        links=tuple((str(path), str(path.readlink())) for path in seen if path.is_symlink()),
        writable=tuple(map(str, writable)),
        bubblewrap=probe.tool("bwrap") or "bwrap",
        setpriv=probe.tool("setpriv") or "setpriv",
    )


async def stop(running: Running, mode: Literal["fast", "immediate"]) -> None:
    """End a postmaster and return when it is gone. Idempotent.

    fast: sessions are ended and everything is written, so that the next start needs no recovery.
    immediate: at once. One that does not listen is killed, with all of its children.
    """
    steps = [(signal.SIGINT, FAST_SECONDS)] if mode == "fast" else []
    launcher = _launcher(running)
    for signum, seconds in (*steps, (signal.SIGQUIT, IMMEDIATE_SECONDS)):
        processes.send(running, signum)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await processes.wait_gone(running)
                break
    else:
        processes.kill_tree(running)
        await processes.wait_gone(running)
    if launcher is not None:
        await processes.wait_gone(launcher)


def is_alive(running: Running) -> bool:
    """Whether this very postmaster still runs."""
    return processes.is_alive(running)


async def wait_gone(running: Running) -> None:
    """Return when the postmaster has ended, for whatever reason."""
    await processes.wait_gone(running)


async def set_passwords(
    socket_path: Path, template_password: str, passwords: Mapping[str, str], entropy: Entropy | None = None
) -> None:
    """Give the roles of a running cluster passwords of their own, in one exchange.

    passwords: role → password. `supabase_admin` must be among them, or it keeps what it had.
    """
    salts = entropy or SystemEntropy()
    statements = [
        f"alter role {identifier(role)} password {literal(make_verifier(password, salts.bytes(16)))}"
        for role, password in passwords.items()
    ]
    session = await connect(str(socket_path), SUPERUSER, template_password)
    try:
        await session.script(";".join(statements))
    finally:
        session.close()


def _make_socket_dir(spec: PostmasterSpec) -> None:
    """Its owner makes the socket in it; a group may pass; nobody else sees it."""
    above = spec.socket_dir.parent
    if not above.exists():
        above.mkdir(parents=True)
        above.chmod(0o711)
    spec.socket_dir.mkdir(exist_ok=True)
    spec.socket_dir.chmod(0o700 if spec.socket_gid is None else 0o710)
    if spec.uid is not None:
        os.chown(spec.socket_dir, spec.uid, spec.uid if spec.socket_gid is None else spec.socket_gid)


async def _forget_crash(data_dir: Path) -> None:
    """Remove the pid file of a postmaster that was killed: its pid may be somebody else's by now.

    What still works in the directory (backends whose postmaster was killed may, for a moment) is ended.
    """
    lock = data_dir / "postmaster.pid"
    if not lock.exists():
        return
    try:
        async with asyncio.timeout(IMMEDIATE_SECONDS):
            for process in processes.working_in(data_dir):
                processes.send(process, signal.SIGKILL)
                await processes.wait_gone(process)
    except TimeoutError:
        raise BackendFailed(cause="a process of an earlier start does not end") from None
    lock.unlink(missing_ok=True)


def _limits(spec: PostmasterSpec) -> Limits:
    return Limits(
        open_files=4096,
        processes=spec.max_connections + 32 if spec.uid is not None else None,
        data_bytes=spec.memory_bytes,
        oom_score=300,
    )


async def _ready(launched: int, watch: Watch, log: int, seen: int) -> None:
    """Return at the line that says so; raise when the process ends before it."""
    pidfd = os.pidfd_open(launched)
    try:
        while True:
            watch.clear()
            said = os.pread(log, 1 << 20, seen)
            if READY in said:
                return
            if await first_readable(watch.fileno(), pidfd) == pidfd:
                raise BackendFailed(cause=_words(os.pread(log, 1 << 20, seen)))
    finally:
        os.close(pidfd)


def _words(log: bytes) -> str:
    """The line of a log that tells best why a start failed."""
    lines = [line for line in log.decode(errors="replace").splitlines() if line.strip()]
    for mark in ("PANIC:", "FATAL:", "error", "bwrap:", "setpriv:"):
        for line in lines:
            if mark in line:
                return line.partition(mark)[2].strip() if mark.isupper() else line
    return lines[-1] if lines else "it ended without a word"


def _find(launched: int) -> Running:
    found = processes.inside(launched)
    if found is None:
        raise BackendFailed(cause="it ended as soon as it was ready")
    return Running(pid=found.pid, started_at_ticks=found.started_at_ticks)


def _launcher(running: Running) -> Process | None:
    """The bubblewrap that waits for this postmaster, if there is one: the leader of its process group.

    (We may be in somebody's sandbox ourselves, whose own bubblewrap adopts orphans.)
    """
    parent = processes.parent(running.pid)
    if parent is None or processes.name(parent.pid) != processes.LAUNCHER:
        return None
    with suppress(ProcessLookupError):
        return parent if os.getpgid(running.pid) == parent.pid else None
    return None
