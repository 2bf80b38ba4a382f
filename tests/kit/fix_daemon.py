"""A real toftd in a home of its own, spoken to by raw HTTP over its socket, and purged afterwards.

All tests of a session use the same path for their home, one after the other: engines know where they lie, so
what took seconds to make once (engines, base template) is put back into the next home as it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import toft as toft_package
from toft import __version__
from toft.protocol.bundle import Bundle

PATIENCE_SECONDS = 60.0
_KEPT = ("engines", "templates")


def tests_root() -> Path:
    """Where homes of tests lie: in memory where that is possible."""
    return Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())


class Answer:
    """An HTTP answer, read whole."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Stream:
    """An answer that goes on: one JSON object per line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: int) -> None:
        self._reader = reader
        self._writer = writer
        self.status = status
        self.progress: list[str] = []
        self._rest = b""

    async def line(self) -> dict[str, Any] | None:
        """The next object; None at the end of the stream."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                line, found, rest = self._rest.partition(b"\n")
                if found:
                    self._rest = rest
                    if line.strip():
                        return json.loads(line)
                    continue
                chunk = await self._chunk()
                if chunk is None:
                    return None
                self._rest += chunk

    async def until(self, member: str) -> Any:
        """Read on to the line that has this member; its value. Progress is collected on the way."""
        while (line := await self.line()) is not None:
            if member in line:
                return line[member]
            if "progress" in line:
                self.progress.append(line["progress"])
            elif "error" in line or "ended" in line:
                raise AssertionError(f"{line} instead of {member}")
        raise AssertionError(f"the stream ended without {member}")

    def close(self) -> None:
        """Hang up."""
        self._writer.close()

    async def _chunk(self) -> bytes | None:
        try:
            size = int(await self._reader.readline() or b"0", 16)
            data = await self._reader.readexactly(size + 2)
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            return None
        return data[:-2] if size else None


class RunningDaemon:
    """A daemon and its home. `start` and `kill` may alternate; the fixture purges at the end."""

    def __init__(self, root: Path, pantry: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.run = root / "run"
        self.socket = self.run / "toftd.sock"
        self.log = self.home / "logs" / "toftd.log"
        self.environ: dict[str, str] = {}
        self.command = [sys.executable, "-P", "-m", "toft.daemon.main"]
        self.process: subprocess.Popen[bytes] | None = None
        self._pantry = pantry
        pantry.mkdir(exist_ok=True)
        self._streams: list[Stream] = []
        self.home.mkdir(parents=True)
        for name in _KEPT:
            if (pantry / name).exists():
                _copy(pantry / name, self.home / name)

    # Its life.

    def spawn(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a toftd, be it the first or not."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TOFT_", "PG"))}
        environ = {
            **kept,
            "PYTHONPATH": str(Path(toft_package.__file__).parents[1]),
            "TOFT_HOME": str(self.home),
            "TOFT_RUN": str(self.run),
            "TOFT_POOL_SIZE": "1",
            "TOFT_POOL_CLONED": "0",
            **self.environ,
        }
        return subprocess.Popen([*self.command, *words], env=environ, stderr=subprocess.PIPE)

    async def start(self, **environ: str) -> None:
        """Start it and wait until it answers."""
        self.environ.update(environ)
        self.process = self.spawn()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                with contextlib.suppress(FileNotFoundError, ConnectionRefusedError, ConnectionResetError):
                    if (await self.ask("GET", "/v1/hello")).json["pid"] == self.process.pid:
                        return
                if self.process.poll() is not None:
                    raise AssertionError(f"toftd ended: {self.said()[-4000:]}")
                await asyncio.sleep(0.01)

    async def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        await self.gone()

    async def gone(self) -> int:
        """Wait for its end."""
        assert self.process is not None
        process, self.process = self.process, None
        status = await asyncio.to_thread(process.wait, PATIENCE_SECONDS)
        if process.stderr is not None:
            process.stderr.close()
        return status

    async def stop(self, *, purge: bool = False) -> Any:
        """Ask it to end, and wait until it has."""
        answer = await self.ask("POST", "/v1/stop", {"purge": purge})
        assert answer.status == 200, answer.body
        await self.gone()
        return answer.json

    def said(self) -> str:
        """Its log."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    # Talking to it.

    async def ask(self, method: str, path: str, message: Any = None, *, body: bytes | None = None) -> Answer:
        """One request, its answer read whole."""
        raw = body if body is not None else b"" if message is None else json.dumps(message).encode()
        async with asyncio.timeout(PATIENCE_SECONDS):
            reader, writer, status, headers = await self._send(method, path, raw)
            try:
                return Answer(status, headers, await _read_body(reader, headers))
            finally:
                writer.close()

    async def open(self, path: str, message: Any) -> Stream:
        """One request whose answer is a stream."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            reader, writer, status, headers = await self._send("POST", path, json.dumps(message).encode())
        stream = Stream(reader, writer, status)
        if status != 200:
            body = await _read_body(reader, headers)
            writer.close()
            raise AssertionError(f"{status}: {body!r}")
        self._streams.append(stream)
        return stream

    async def take(self, **wish: Any) -> dict[str, Any]:
        """A lease that only time or release ends."""
        answer = await self.ask("POST", "/v1/leases", {"version": __version__, **wish})
        assert answer.status == 201, answer.body
        return answer.json

    async def hold(self, **wish: Any) -> tuple[dict[str, Any], Stream]:
        """A lease that lives by its stream."""
        stream = await self.open("/v1/leases", {"version": __version__, "hold": True, **wish})
        return await stream.until("lease"), stream

    async def put(self, bundle: Bundle) -> str:
        """Give it a project; the digest."""
        digest = bundle.digest()
        answer = await self.ask("PUT", f"/v1/projects/{digest}", body=bundle.encode())
        assert answer.status == 204, answer.body
        return digest

    async def leases(self) -> list[dict[str, Any]]:
        return (await self.ask("GET", "/v1/leases")).json["leases"]

    async def metrics(self) -> Any:
        return (await self.ask("GET", "/v1/metrics")).json

    async def _send(
        self, method: str, path: str, body: bytes
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, int, dict[str, str]]:
        reader, writer = await asyncio.open_unix_connection(str(self.socket), limit=1 << 20)
        head = f"{method} {path} HTTP/1.1\r\nhost: toft\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        status_line = await reader.readline()
        if not status_line:
            writer.close()
            raise ConnectionResetError
        headers: dict[str, str] = {}
        while (line := (await reader.readline()).strip()) != b"":
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return reader, writer, int(status_line.split()[1]), headers

    # What is in its world.

    def rows(self, sql: str, *params: Any) -> list[Any]:
        """Look into its store."""
        with contextlib.closing(sqlite3.connect(f"file:{self.home}/state.sqlite3?mode=ro", uri=True)) as db:
            return db.execute(sql, params).fetchall()

    def postmaster(self, lease: dict[str, Any]) -> int:
        """The postmaster's pid of a lease."""
        [(pid,)] = self.rows("SELECT pid FROM backend WHERE id = ?", lease["backend_id"])
        return pid

    def worker_pids(self) -> list[int]:
        return [pid for (pid,) in self.rows("SELECT pid FROM worker")]

    async def event(self, pattern: str, *, count: int = 1) -> None:
        """Wait until so many lines of the log match."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(re.findall(pattern, self.said())) < count:
                await asyncio.sleep(0.01)

    async def until_gone(self, lease: dict[str, Any]) -> None:
        """Wait until nothing of a lease's backend is left."""
        await self.event(f"backend.gone backend={lease['backend_id']}")

    def processes(self) -> list[str]:
        """Command lines of living processes that belong to this home: by words, environment or folder."""
        mark = str(self.root)
        ours = f"TOFT_HOME={self.home}".encode()
        found: list[str] = []
        for path in Path("/proc").iterdir():
            if not path.name.isdigit() or int(path.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
                there = os.readlink(path / "cwd") if os.access(path / "cwd", os.R_OK) else ""
                is_ours = ours in (path / "environ").read_bytes().split(b"\0")
                if state != "Z" and (is_ours or mark in words or there.startswith(mark)):
                    found.append(f"{path.name}: {words}")
        return found

    # Its end.

    async def release_all(self) -> None:
        """End every lease and wait until its backend is gone."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()
        for lease in await self.leases():
            await self.ask("DELETE", f"/v1/leases/{lease['id']}")
        await self.none_leased()

    async def none_leased(self) -> None:
        """Wait until no backend of a lease is left."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.rows("SELECT 1 FROM backend WHERE is_leased"):
                await asyncio.sleep(0.01)

    def keep_what_was_dear(self) -> None:
        """Save engines and the base template for the next home."""
        for name in _KEPT:
            source, target = self.home / name, self._pantry / name
            for entry in source.iterdir() if source.exists() else ():
                is_wanted = name == "engines" or entry.name.startswith("base-")
                if is_wanted and not entry.name.startswith(".") and not (target / entry.name).exists():
                    target.mkdir(exist_ok=True)
                    target.chmod(0o711)
                    _copy(entry, target / entry.name)

    async def purge(self) -> None:
        """End it with everything that it has, and see that nothing is left."""
        for stream in self._streams:
            stream.close()
        if self.process is None and not self.home.exists():
            self.must_have_left_nothing()  # purged already
            return
        self.keep_what_was_dear()
        if self.process is None or self.process.poll() is not None:
            if self.process is not None:
                await self.gone()
            await self.start()
        await self.stop(purge=True)
        self.must_have_left_nothing()

    def must_have_left_nothing(self) -> None:
        """No process, directory, socket or mount of this home."""
        assert self.processes() == []
        left = [str(path) for path in self.root.rglob("*")]
        assert left == []
        assert str(self.root) not in Path("/proc/mounts").read_text()


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") == "chunked":
        parts: list[bytes] = []
        while size := int(await reader.readline(), 16):
            parts.append((await reader.readexactly(size + 2))[:-2])
        return b"".join(parts)
    return await reader.readexactly(int(headers.get("content-length", "0")))


@pytest.fixture(scope="session")
def toftd_root() -> Iterator[Path]:
    """A folder in memory, short enough for sockets, that backends' users may pass through."""
    folder = Path(tempfile.mkdtemp(prefix="toft-d-", dir=tests_root()))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def shared_toftd(toftd_root: Path) -> Iterator[RunningDaemon]:
    """One daemon for all tests that leave it alive. At the end it is purged and must have left nothing."""
    running = RunningDaemon(toftd_root / "shared", toftd_root / "pantry-shared")
    try:
        asyncio.run(running.start())
        yield running
        asyncio.run(running.purge())
    finally:
        clear_away(running)


@pytest.fixture
async def toftd(shared_toftd: RunningDaemon) -> AsyncIterator[RunningDaemon]:
    """A running daemon without leases; those of the test are released after it."""
    yield shared_toftd
    await shared_toftd.release_all()


@pytest.fixture
async def own_toftd(toftd_root: Path) -> AsyncIterator[RunningDaemon]:
    """A home of the test's own, whose daemon it starts and kills; purged afterwards."""
    running = RunningDaemon(toftd_root / "own", toftd_root / "pantry-own")
    try:
        yield running
        await running.purge()
    finally:
        clear_away(running)


def clear_away(running: RunningDaemon) -> None:
    """After a failed test: end and remove what it left. Nothing to do after a good one."""
    if running.process is not None:
        running.process.kill()
        running.process.wait()
        if running.process.stderr is not None:
            running.process.stderr.close()
    for line in running.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(line.partition(":")[0]), signal.SIGKILL)
    shutil.rmtree(running.root, ignore_errors=True)
