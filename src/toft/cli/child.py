"""The user's command as our child: its terminal, its signals, its exit status.

The command stays in our process group, so that it is in the foreground where we are, and an interactive shell
can take and give back the terminal as usual. One loop waits for everything: all signals are blocked and taken
by `sigtimedwait`, which tells who sent them; the command's end is SIGCHLD, and the lease's stream is SIGIO.

* What the terminal sends (Ctrl-C, Ctrl-\\, Ctrl-Z, a new window size) has reached the command already, being
  sent to the whole group: it is not passed on again. What a process sends to us alone is passed on.
* When the command stops, so do we, and the shell that called us sees the job stopped; when we are continued,
  so is the command.
* A command that dies by a signal makes us die by it too, so that whoever waits for us sees the same.
"""

from __future__ import annotations

import errno
import os

from toft.errors.daemon import CommandNotExecutable, CommandNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Mapping, Sequence

    from toft.client.hold import Hold
else:
    import _signal as signal  # signal itself would import enum

_PASSED_ON = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
    signal.SIGTSTP,
)
#: A terminal sends these to the foreground group; SIGHUP to the session's leader, which may be just us.
_SENT_TO_GROUP = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH)
_TAKEN = (*_PASSED_ON, signal.SIGCHLD, signal.SIGCONT, signal.SIGIO, signal.SIGTTOU)
#: si_code of a signal that the kernel sent by itself
_SI_KERNEL = 0x80
#: Python ignores these; the command must not.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def find_command(command: str, environ: Mapping[str, str]) -> str:
    """The file that a shell would run. Raises as shells do: 127 not found, 126 not executable."""
    if "/" in command:
        places = [command]
    else:
        folders = environ.get("PATH", os.defpath).split(os.pathsep)
        places = [f"{folder or '.'}/{command}" for folder in folders]
    found_but: str | None = None
    for place in places:
        if os.path.isdir(place):
            found_but = found_but or ("it is a folder" if "/" in command else None)
        elif os.access(place, os.X_OK):
            return place
        elif os.path.exists(place):
            found_but = "permission denied"
    if found_but:
        raise CommandNotExecutable(command=command, cause=found_but)
    raise CommandNotFound(command=command)


def run(
    command: Sequence[str],
    path: str,
    environ: Mapping[str, str],
    hold: Hold,
    warn: Callable[[str], None],
) -> int:
    """Run a command to its end while the hold keeps its lease. Gives its wait status, as `waitpid` does."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whoever ignored it would hide the command's end from us
    taken = [number for number in _TAKEN if signal.getsignal(number) != signal.SIG_IGN]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, taken)
    pid = _spawn(command, path, environ, before)
    while True:
        for text in hold.pump():
            warn(text)
        status = _take_signals(pid, taken, hold.wait_seconds())
        if status is not None:
            return status


def _spawn(command: Sequence[str], path: str, environ: Mapping[str, str], mask: set[int]) -> int:
    def spawn(path: str, words: Sequence[str]) -> int:
        return os.posix_spawn(path, [*words], environ, setsigmask=mask, setsigdef=_IGNORED_BY_PYTHON)

    try:
        try:
            return spawn(path, command)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            return spawn("/bin/sh", ["sh", path, *command[1:]])  # a script without a first line, as shells do
    except OSError as error:
        cause = "its interpreter is missing" if error.errno == errno.ENOENT else os.strerror(error.errno or 0)
        raise CommandNotExecutable(command=command[0], cause=cause) from None


def spawn_beside(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """Start a helper of ours: in a session of its own, so that the terminal's signals do not reach it."""
    actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
    return os.posix_spawn(words[0], [*words], environ, file_actions=actions, setsid=True)


def end(pid: int) -> None:
    """End a helper."""
    _send(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _take_signals(pid: int, taken: Sequence[int], timeout: float | None) -> int | None:
    """Wait for signals and deal with all that have come; the command's status once it has ended."""
    is_child_changed = False
    info = signal.sigwaitinfo(taken) if timeout is None else signal.sigtimedwait(taken, timeout)
    while info is not None:
        number = info.si_signo
        if number == signal.SIGCHLD:
            is_child_changed = True
        elif number == signal.SIGCONT or (number in _PASSED_ON and not _has_it(number, info.si_code)):
            _send(pid, number)
        info = signal.sigtimedwait(taken, 0)
    return _look_at(pid) if is_child_changed else None


def _has_it(number: int, code: int) -> bool:
    return code == _SI_KERNEL and number in _SENT_TO_GROUP


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # it has just ended, or became another user (sudo): then the terminal's signals must do


def _look_at(pid: int) -> int | None:
    """The status of a command that has ended. Stops along with one that has stopped."""
    while True:
        changed, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if changed == 0:
            return None
        if not os.WIFSTOPPED(status):
            return status
        _stop()
        _send(pid, signal.SIGCONT)


def _stop() -> None:
    """Stop as a terminal would stop us, until we are continued; not if nobody could do that."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTSTP])
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTSTP])


def end_as(status: int) -> int:
    """The exit status for a wait status; does not return when the command died by a signal."""
    if os.WIFSIGNALED(status):
        return die_by(os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def die_by(number: int) -> int:
    """End this process by a signal, without a core file of ours."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    return 128 + number  # a signal whose default is to do nothing
