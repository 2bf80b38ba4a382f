"""`toft` as a user calls it, against a real daemon; and the daemon that such a call may have started."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.kit.fix_cli import TOFT, plain_environment
from tests.kit.fix_daemon import PATIENCE_SECONDS, RunningDaemon

#: On stderr besides an error and its hint: notes, and what belongs to a failed statement.
_BESIDE = re.compile(r"(note|detail|where|kept): |[ 0-9]*\|")

#: A command for `toft run`: says that it runs, then answers each line of SQL by a line with the result.
ASK_SQL = [
    sys.executable,
    "-u",
    "-c",
    """
import asyncio, os, sys, asyncpg
async def ask(sql):
    session = await asyncpg.connect(os.environ["DATABASE_URL"])
    try:
        return await session.fetchval(sql)
    finally:
        await session.close()
print("ready", os.environ["TOFT_INSTANCE_ID"])
for line in sys.stdin:
    print(asyncio.run(ask(line)))
""",
]


class RealCli:
    """Calls `toft` in one folder, for one daemon's home."""

    def __init__(self, daemon: RunningDaemon, folder: Path) -> None:
        self.daemon = daemon
        self.folder = folder

    def environment(self, extra: dict[str, str] | None = None) -> dict[str, str]:
        """What the call finds; a daemon that it starts has the settings of the test's own."""
        return plain_environment(
            {
                "TOFT_HOME": str(self.daemon.home),
                "TOFT_RUN": str(self.daemon.run),
                "TOFT_POOL_SIZE": "1",
                "TOFT_POOL_CLONED": "0",
                **self.daemon.environ,
                **(extra or {}),
            }
        )

    def __call__(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run `toft` with these words to its end."""
        return subprocess.run(
            [*TOFT, *words],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            cwd=self.folder,
            env=self.environment(environ),
            stdin=subprocess.DEVNULL,
        )

    def json(self, *words: str) -> Any:
        """What a call that goes well prints with --json."""
        done = self(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def refusal(self, *words: str, **environ: str) -> dict[str, Any]:
        """The error of a call that is refused, which is one line for people and one object with --json."""
        own = words.index("--") if "--" in words else len(words)
        plain = self(*words, **environ)
        assert plain.returncode not in (0, -signal.SIGKILL), plain.stdout
        told = [line for line in plain.stderr.splitlines() if not _BESIDE.match(line)]
        assert [line.partition(":")[0] for line in told] == ["error", "hint"], plain.stderr
        done = self(*words[:own], "--json", *words[own:], **environ)
        assert done.returncode == plain.returncode
        error = json.loads(done.stderr.splitlines()[-1])["error"]
        assert (error["title"], error["remedy"]) == tuple(line.partition(": ")[2] for line in told)
        return error

    @contextmanager
    def started(self, *words: str) -> Generator[subprocess.Popen[str]]:
        """`toft` with these words, running; killed at the end, and what it started too."""
        process = subprocess.Popen(
            [*TOFT, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment(),
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=PATIENCE_SECONDS)

    def write(self, files: dict[str, str | bytes]) -> None:
        """Put a project's files into the folder; a name without a folder is that of a migration."""
        for name, text in files.items():
            path = self.folder / (name if "/" in name else f"supabase/migrations/{name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)


def read_line(process: subprocess.Popen[str]) -> str:
    """The next line of a command's output."""
    assert process.stdout
    return process.stdout.readline().strip()


def ask(process: subprocess.Popen[str], sql: str) -> str:
    """Have `ASK_SQL` ask its database."""
    assert process.stdin
    process.stdin.write(sql + "\n")
    process.stdin.flush()
    return read_line(process)


class Stranger:
    """A process that is no child of ours, with as much of a Popen as `RunningDaemon` uses."""

    stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """None while it lives."""
        return 0 if self._is_gone(0) else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; how it ended is not known."""
        assert self._is_gone(None if timeout is None else timeout * 1000), f"process {self.pid} stays"
        os.close(self._pidfd)
        return 0

    def kill(self) -> None:
        """kill -9."""
        signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Any other signal."""
        signal.pidfd_send_signal(self._pidfd, number)

    def _is_gone(self, milliseconds: float | None) -> bool:
        end = select.poll()
        end.register(self._pidfd, select.POLLIN)
        return bool(end.poll(milliseconds))


async def take_charge(daemon: RunningDaemon) -> None:
    """The daemon that answers may have been started by a command: from now on it is the test's to stop."""
    pid = (await daemon.ask("GET", "/v1/hello")).json["pid"]
    if daemon.process is not None:
        if daemon.process.pid == pid:
            return
        await daemon.gone()
    daemon.process = Stranger(pid)  # pyright: ignore[reportAttributeAccessIssue] - as much of it as is used
