"""Start the daemon when there is none. Any number of clients may want that at once; one daemon comes of it.

The daemon itself makes sure that it is the only one of its home (it holds a lock as long as it lives); the
lock here only spares the others the attempt. It belongs to the run folder and is let go by closing it, so a
client that is killed in the middle blocks nobody.
"""

from __future__ import annotations

import os
import select
import time
from fcntl import LOCK_EX, LOCK_NB, flock

from toft.client.transport import dial
from toft.errors.daemon import DaemonLeft, DaemonNotRunning, DaemonUnreachable, HomeUnusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Mapping

    from toft.errors.shape import ToftError
    from toft.settings import Settings

#: A daemon that listens after this time is not waited for; a cold disk and a slow machine need a few seconds.
START_SECONDS = 30.0
#: What of a user's environment is also the daemon's. The rest (PGHOST, LD_PRELOAD, tokens) stays out.
_HANDED_ON = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "LANG",
    "TZ",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
)
_HANDED_ON_PREFIXES = ("TOFT_", "XDG_", "LC_", "PYTHON")


def socket_path(settings: Settings) -> str:
    """Where the daemon of this home listens."""
    return settings.run + "/toftd.sock"


def log_path(settings: Settings) -> str:
    """What the daemon says."""
    return settings.home + "/logs/toftd.log"


def reach(settings: Settings, environ: Mapping[str, str], python: str) -> socket:
    """A connection to the daemon, which is started when none runs."""
    try:
        return dial(socket_path(settings), settings.home)
    except DaemonNotRunning:
        pass
    prepare(settings)
    lock = _open_lock(settings)
    try:
        flock(lock, LOCK_EX)
        try:  # another client may have started it while this one waited
            return dial(socket_path(settings), settings.home)
        except DaemonNotRunning:
            return _start(settings, environ, python)
    finally:
        os.close(lock)


def _start(settings: Settings, environ: Mapping[str, str], python: str) -> socket:
    told, report = os.pipe()
    try:
        try:
            pid = spawn(settings, environ, python, report)
        finally:
            os.close(report)
        return _wait(settings, pid, told)
    finally:
        os.close(told)


def start_in_background(settings: Settings, environ: Mapping[str, str], python: str) -> None:
    """Start a daemon and do not wait for it; nothing happens while someone else is starting one."""
    prepare(settings)
    lock = _open_lock(settings)
    try:
        flock(lock, LOCK_EX | LOCK_NB)
        spawn(settings, environ, python)
    except BlockingIOError:
        pass
    finally:
        os.close(lock)


def prepare(settings: Settings) -> None:
    """The folders that a daemon needs, made, and known to be this user's own."""
    mode = 0o711 if os.geteuid() == 0 else 0o700
    for path, folder_mode in ((settings.home, mode), (settings.home + "/logs", 0o700), (settings.run, mode)):
        try:
            os.makedirs(path, folder_mode, exist_ok=True)
            status = os.stat(path)
        except OSError as error:
            raise HomeUnusable(path=path, cause=os.strerror(error.errno or 0)) from None
        if status.st_uid != os.geteuid():
            raise HomeUnusable(path=path, cause="it belongs to another user")
    parent = os.lstat(os.path.dirname(settings.run))
    if parent.st_uid not in (0, os.geteuid()):
        raise HomeUnusable(path=settings.run, cause="the folder around it belongs to another user")


def _open_lock(settings: Settings) -> int:
    try:
        return os.open(settings.run + "/launch.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise HomeUnusable(path=settings.run, cause=os.strerror(error.errno or 0)) from None


def spawn(settings: Settings, environ: Mapping[str, str], python: str, report: int | None = None) -> int:
    """Start toftd in a session of its own, its output at the end of its log. Gives its process id.

    report: a pipe that it writes to, as problem+json, why it does not come up.
    """
    handed = {
        name: value
        for name, value in environ.items()
        if name in _HANDED_ON or name.startswith(_HANDED_ON_PREFIXES)
    }
    handed |= {"TOFT_HOME": settings.home, "TOFT_RUN": settings.run}
    for name in ("TOFT_INSTANCE_ID", "TOFT_LEASE_CREDENTIAL"):
        handed.pop(name, None)
    log_flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        return os.posix_spawn(
            python,
            # -P: the folder one happens to stand in is no place to import from
            [python, "-P", "-m", "toft.daemon.main", *([] if report is None else ["--report"])],
            handed,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, log_path(settings), log_flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 2 if report is None else report, 1),
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=range(1, 32),
        )
    except OSError as error:
        raise HomeUnusable(path=log_path(settings), cause=os.strerror(error.errno or 0)) from None


def _wait(settings: Settings, pid: int, told: int) -> socket:
    """Until it listens. Its death is an event; that it listens can only be tried."""
    death = select.poll()
    pidfd = os.pidfd_open(pid)
    death.register(pidfd, select.POLLIN)
    deadline = time.monotonic() + START_SECONDS
    pause = 4.0
    try:
        while time.monotonic() < deadline:
            is_dead = bool(death.poll(pause))
            pause = min(pause * 1.5, 50.0)
            try:
                return dial(socket_path(settings), settings.home)
            except DaemonNotRunning:
                if is_dead:
                    raise _why(settings, pid, told) from None
    finally:
        os.close(pidfd)
    raise DaemonUnreachable(cause=f"it did not listen within {START_SECONDS:.0f} s")


def _why(settings: Settings, pid: int, told: int) -> ToftError:
    from toft.client.raises import from_problem
    from toft.protocol import plain_json

    os.set_blocking(told, False)
    try:
        return from_problem(plain_json.as_object(plain_json.decode(os.read(told, 1 << 16))))
    except (ValueError, BlockingIOError):
        pass
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, os.WNOHANG)[1])
    except ChildProcessError:
        status = 0  # somebody else has asked already
    if status <= 0:  # it was stopped or killed meanwhile; or another one serves, and is just coming or going
        return DaemonLeft(cause=f"it ended with status {status}")
    return DaemonUnreachable(cause=f"it ended with status {status}: {_last_words(settings)}")


def _last_words(settings: Settings) -> str:
    try:
        with open(log_path(settings), "rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
            lines = log.read().decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "without a word"
