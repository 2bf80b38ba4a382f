"""The main of toftd: `python -m toft.daemon.main`. Prepares the process and the home, takes the lock, serves.

Only one daemon serves a home. A second one that finds the first answering ends quietly, as if it had been the
one: whoever wanted a daemon has one.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from toft import settings as options
from toft.backends.fault import explain
from toft.backends.places import Places
from toft.errors.daemon import DaemonUnreachable, HomeUnusable
from toft.errors.shape import ToftError
from toft.settings import Settings
from toft.world import SystemClock, SystemEntropy

#: A daemon that holds the lock and does not answer for so long is given up.
LOCK_SECONDS = 10.0
ANSWER_SECONDS = 2.0
#: Argument of the run that ends what nobody came back for.
END_LEASES = "--end-leases"
#: Argument of a client that waits: why the daemon does not come up is then also told as JSON on stdout.
REPORT = "--report"
_OPEN_FILES = 65536

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.daemon.compose import Plan
    from toft.daemon.life import Daemon
    from toft.host.confine import Method


def main() -> int:
    """Run the daemon; the exit status."""
    report = os.dup(1) if REPORT in sys.argv[1:] else None
    try:
        settings = options.load()
        places = Places(home=Path(settings.home), run=Path(settings.run))
        _harden()
        _prepare(places)
        lock = _take_lock(places)
        if lock is None:
            return 0
        with lock:
            try:
                left = _serve(settings, places)
            except OSError as error:
                raise explain(error, places.home, "toftd") from error
        if left:
            _leave_caretaker(settings)
    except ToftError as error:
        _say(error, report)
        return error.exit_status
    return 0


def _say(error: ToftError, report: int | None) -> None:
    """In one line for people, as JSON for the client that waits. A full disk does not stop us here."""
    with suppress(OSError):
        os.write(2, f"error: {error}; {error.hint}\n".encode())
    if report is not None:
        with suppress(OSError):  # that client went away
            os.write(report, json.dumps(error.to_json()).encode())


def _harden() -> None:
    """No core dumps (they would hold secrets), no files for others, many descriptors, our own session."""
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if most == resource.RLIM_INFINITY else min(_OPEN_FILES, most)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    with suppress(PermissionError):  # we lead a group already: then a closed terminal must not end us
        os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.chdir("/")


def _prepare(places: Places) -> None:
    """Make the folders; those that backends' users pass through can be passed and not listed."""
    passable = 0o711 if os.geteuid() == 0 else 0o700
    folders = {
        places.home: passable,
        places.log.parent: 0o700,
        places.templates: passable,
        places.projects: 0o700,
        places.backends: passable,
        places.snapshots: 0o700,
        places.trash: 0o700,
        places.run: passable,
        places.sockets: passable,
    }
    for path, mode in folders.items():
        try:
            path.mkdir(parents=True, exist_ok=True)
            status = path.stat()
            if status.st_uid != os.geteuid():
                raise HomeUnusable(path=str(path), cause="it belongs to another user")
            path.chmod(mode)
            if path is places.run and os.geteuid() == 0:
                path.parent.chmod(path.parent.stat().st_mode | 0o111)
        except OSError as error:
            raise HomeUnusable(path=str(path), cause=os.strerror(error.errno or 0)) from None


class _Lock:
    """The lock of a home, held as long as this process lives."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _take_lock(places: Places) -> _Lock | None:
    """The lock, or None when another daemon has it and answers."""
    while True:
        try:
            descriptor = os.open(places.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HomeUnusable(path=str(places.home), cause=os.strerror(error.errno or 0)) from None
        if not _lock_file(descriptor, places):
            os.close(descriptor)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), places.lock.stat()):
                with suppress(OSError):  # the disk may be full; it is only told to people
                    os.pwrite(descriptor, f"{os.getpid():<20}".encode(), 0)
                return _Lock(descriptor)
        os.close(descriptor)  # a purge removed the file meanwhile: this lock guards nothing


def _lock_file(descriptor: int, places: Places) -> bool:
    """Take it at once, or find the daemon that has it answering, or take it when that one ends."""
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    if _answers(places):
        return False
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, LOCK_SECONDS)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except TimeoutError:
        if _answers(places):
            return False
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "of another user"
        raise DaemonUnreachable(cause=f"process {holder} holds its lock and does not answer") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return True


def _give_up(signum: int, frame: object) -> None:
    raise TimeoutError


def _answers(places: Places) -> bool:
    with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
        connection.settimeout(ANSWER_SECONDS)
        connection.connect(str(places.control_socket))
        connection.sendall(b"GET /v1/hello HTTP/1.1\r\nhost: toft\r\nconnection: close\r\n\r\n")
        return connection.recv(64).startswith(b"HTTP/1.1 200 ")
    return False


def _serve(settings: Settings, places: Places) -> int:
    """Serve until the daemon is stopped; the number of leases that live on."""
    import uvloop

    from toft.daemon.compose import compose
    from toft.telemetry.log import LogFile, Telemetry

    clock = SystemClock()
    log = LogFile(places.log, clock, level=settings.log_level)
    log.take_output()

    async def serve() -> Daemon:
        tell = Telemetry(log)
        daemon = compose(make_plan(settings, places), clock, SystemEntropy(), tell, os.getpid())
        await daemon.serve(end_leases=END_LEASES in sys.argv[1:])
        return daemon

    try:
        daemon = uvloop.run(serve())
    finally:
        log.close()
    if daemon.was_purged:
        _remove_folders(places)
    return daemon.leases_left


def _remove_folders(places: Places) -> None:
    """The last of a purge. The lock goes when nothing is left that a new daemon could share with us."""
    for path in places.log.parent.glob("toftd.log*"):
        path.unlink()
    places.launch_lock.unlink(missing_ok=True)  # a client that waits for it finds our own lock, or no daemon
    for path in (places.log.parent, places.sockets):
        with suppress(OSError):
            path.rmdir()
    places.lock.unlink(missing_ok=True)
    for path in (places.home, places.run):
        with suppress(OSError):  # a config.toml of the user's
            path.rmdir()


def make_plan(settings: Settings, places: Places) -> Plan:
    """What the settings say, in the terms of the rooms."""
    from toft.backends.context import Knobs
    from toft.daemon.compose import Plan
    from toft.daemon.life import Bounds
    from toft.daemon.worker_walls import worker_line
    from toft.leases.refill import Limits

    python = (options.python(), "-P", "-m")
    env = options.environment()
    knobs = Knobs(
        confinement=choose_confinement(settings.confine),
        uid_base=settings.uid_base if os.geteuid() == 0 else None,
        max_body_bytes=settings.max_body,
        disk_quota_bytes=settings.disk_quota,
        sleep_after_seconds=settings.sleep_after,
        max_backends=settings.max_backends,
    )
    return Plan(
        places=places,
        knobs=knobs,
        bounds=Bounds(
            pool=Limits(
                started=settings.pool_size,
                cloned=settings.pool_cloned,
                most_things=settings.max_backends,
            ),
            templates_kept=settings.templates_kept,
            templates_bytes=settings.templates_bytes,
            boot_id=_boot_id(),
        ),
        bindir=Path(settings.pg_bindir) if settings.pg_bindir else None,
        workers=settings.workers,
        job_argv=(*python, "toft.backends.job", settings.home),
        worker_argv=worker_line(
            (*python, "toft.gateway.worker"), places, knobs.confinement, knobs.worker_uid
        ),
        child_env=env,
    )


def choose_confinement(wanted: str) -> Method:
    """The strongest that works here, or the one that was asked for."""
    if wanted == "bubblewrap" or wanted == "setpriv" or wanted == "none":
        return wanted
    from toft.host.probe import choose_method

    return choose_method()


def _boot_id() -> str:
    """What names this boot of the machine."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith("btime "):
            return line
    return "unknown"


def _leave_caretaker(settings: Settings) -> None:
    """Leases live on for the grace. If no daemon has come by then, somebody must end them."""
    argv = [options.python(), "-P", "-m", "toft.daemon.caretaker"]
    env = {**options.environment(), "TOFT_HOME": settings.home, "TOFT_RUN": settings.run}
    os.posix_spawn(argv[0], argv, env, setsid=True)


if __name__ == "__main__":
    sys.exit(main())
