"""`toft run` on a terminal: job control, Ctrl-C, Ctrl-Z, a terminal that closes."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.kit.fix_cli import TOFT, plain_environment
from tests.kit.small_daemon import SmallDaemon

BASH = ["bash", "--norc", "--noprofile", "-i"]
RUN = shlex.join([*TOFT, "run", "--"])


class Terminal:
    """A pseudo-terminal with a process as the leader of its session."""

    def __init__(self, pid: int, fd: int) -> None:
        self.pid = pid
        self.fd = fd
        self.seen = ""

    def type(self, text: str) -> None:
        """As if at the keyboard; control characters act."""
        os.write(self.fd, text.encode())

    def expect(self, pattern: str) -> re.Match[str]:
        """Wait until the screen shows this; what came before it is forgotten."""
        deadline = time.monotonic() + 30
        while True:
            found = re.search(pattern, self.seen)
            if found:
                self.seen = self.seen[found.end() :]
                return found
            ready, _, _ = select.select([self.fd], [], [], deadline - time.monotonic())
            assert ready, f"{pattern!r} did not come: {self.seen!r}"
            try:
                self.seen += os.read(self.fd, 4096).decode(errors="replace")
            except OSError:
                raise AssertionError(f"{pattern!r} did not come before the end: {self.seen!r}") from None

    def wait(self) -> int:
        """The exit code of the leader, once it has ended."""
        with suppress(OSError):  # the terminal closes with its last process
            while True:
                ready, _, _ = select.select([self.fd], [], [], 30)
                assert ready, f"it did not end: {self.seen!r}"
                self.seen += os.read(self.fd, 4096).decode(errors="replace")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@contextmanager
def terminal(cli_daemon: SmallDaemon, folder: Path, words: list[str]) -> Iterator[Terminal]:
    """A terminal in which these words run."""
    environ = plain_environment(
        {**cli_daemon.environment(), "PS1": "prompt> ", "TERM": "dumb", "HISTFILE": ""}
    )
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(words[0], words, environ)
    screen = Terminal(pid, fd)
    try:
        yield screen
    finally:
        with suppress(ProcessLookupError, ChildProcessError):
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, os.WNOHANG)
        with suppress(OSError):
            os.close(fd)


def state(pid: int) -> str:
    """The kernel's letter for what a process does: T for stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_interactive_shell_has_job_control(cli_daemon: SmallDaemon, folder: Path) -> None:
    """`toft run -- bash` is a shell like any other: jobs stop and go on, and its exit status counts."""
    with terminal(cli_daemon, folder, [*TOFT, "run", "--", *BASH]) as screen:
        before = screen.expect(r"prompt> ")
        assert "job control" not in before.string
        screen.type("echo url=$SUPABASE_URL\n")
        screen.expect(r"url=http://127.0.0.1:21000")
        screen.type("PS1='inner> '; sh -c 'echo begun $$; exec cat'\n")
        screen.expect(r"begun \d+")
        screen.type("\x1a")
        screen.expect(r"Stopped")
        screen.expect("inner> ")
        screen.type("fg\n")
        screen.expect(r"cat'\r\n")
        screen.type("go on\n")
        screen.expect(r"go on\r\ngo on")
        screen.type("\x03")
        screen.expect("inner> ")
        screen.type("exit 5\n")
        assert screen.wait() == 5


def test_interrupt_from_the_terminal_comes_once(cli_daemon: SmallDaemon, folder: Path) -> None:
    """Ctrl-C reaches the command by its process group, and Toft does not send it again; Toft survives it."""
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, lambda *_: os.write(1, b'INT\\n'))\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin: print('got', line.strip(), flush=True); break\n"
        "sys.exit(3)"
    )
    with terminal(cli_daemon, folder, [*TOFT, "run", "--", sys.executable, "-c", code]) as screen:
        screen.expect("ready")
        screen.type("\x03")
        screen.expect("INT")
        screen.type("on\n")
        assert "INT" not in screen.expect(r"(?s).*got on")[0]
        assert screen.wait() == 3


def test_stop_and_continue_take_toft_and_the_command(cli_daemon: SmallDaemon, folder: Path) -> None:
    """Ctrl-Z stops the command and Toft, so that the shell gets its terminal back; fg continues both."""
    with terminal(cli_daemon, folder, BASH) as screen:
        screen.expect("prompt> ")
        screen.type(f"{RUN} cat\n")
        cli_daemon.wait_for("POST", "/v1/leases")
        screen.expect("empty")
        screen.type("first\n")
        screen.expect(r"first\r\nfirst")
        [toft] = children(screen.pid)
        screen.type("\x1a")
        screen.expect(r"Stopped")
        screen.expect("prompt> ")
        [command] = children(toft)
        assert (state(toft), state(command)) == ("T", "T")
        screen.type("fg\n")
        screen.expect(r"cat\r\n")
        screen.type("second\n")
        screen.expect(r"second\r\nsecond")
        screen.type("\x1a")
        screen.expect(r"Stopped")
        screen.expect("prompt> ")
        screen.type("fg\n")
        screen.expect(r"cat\r\n")
        screen.type("third\n")
        screen.expect(r"third\r\nthird")
        screen.type("\x03")
        screen.expect("prompt> ")
        screen.type("echo status=$?; exit\n")
        screen.expect("status=130")


def test_suspended_shell_gives_the_terminal_back(cli_daemon: SmallDaemon, folder: Path) -> None:
    """A shell under Toft that suspends itself stops Toft too, and comes back with fg."""
    with terminal(cli_daemon, folder, BASH) as screen:
        screen.expect("prompt> ")
        screen.type(f"PS1='inner> ' {RUN} {shlex.join(BASH)}\n")
        screen.expect("inner> ")
        screen.type("suspend\n")
        screen.expect(r"Stopped")
        screen.expect("prompt> ")
        screen.type("fg\n")
        screen.expect("bash")
        screen.type("echo inside=$TOFT_INSTANCE_ID\n")
        screen.expect("inside=lease_")
        screen.type("exit 4\n")
        screen.expect("prompt> ")
        screen.type("echo status=$?; exit\n")
        screen.expect("status=4")


def test_closed_terminal_ends_command_and_lease(cli_daemon: SmallDaemon, folder: Path) -> None:
    """When the terminal goes away the command gets its hangup, and with it the lease ends."""
    with terminal(cli_daemon, folder, [*TOFT, "run", "--", "cat"]) as screen:
        cli_daemon.wait_for("POST", "/v1/leases")
        screen.expect("empty")
        screen.type("x\n")
        screen.expect(r"x\r\nx")
        [hold] = cli_daemon.holds
        hold.sock.settimeout(20)
        os.close(screen.fd)
        assert hold.sock.recv(1) == b""
