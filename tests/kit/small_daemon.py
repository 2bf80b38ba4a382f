"""A daemon as small as it can be: it speaks the control API on a real Unix socket and keeps leases in memory.

The CLI's tests use it where they need a daemon that misbehaves on demand. It has no backends: what it hands
out leads nowhere.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LEASE: dict[str, Any] = {
    "id": "lease_0123456789abcdef",
    "backend_id": "b_0123456789abcdef",
    "label": "",
    "state": "active",
    "created_at": "2026-11-30T10:00:00Z",
    "expires_at": "2026-11-30T10:30:00Z",
    "ttl_seconds": 1800,
    "held": True,
    "host": "127.0.0.1",
    "http_port": 21000,
    "db_port": 22000,
    "url": "http://127.0.0.1:21000",
    "notices": [],
    "template": {"key": "t", "was_cached": True, "applied": 0},
    "user": "postgres",
    "password": "pass-word",
    "database": "postgres",
    "anon_key": "anon-key",
    "service_role_key": "service-role-key",
    "publishable_key": "sb_publishable_x",
    "secret_key": "sb_secret_x",
    "jwt_secret": "jwt-secret",
    "s3_access_key_id": "s3-id",
    "s3_secret_access_key": "s3-secret",
    "credential": "credential-1",
}


class Call:
    """One request as it came in, and a way to answer it."""

    def __init__(self, sock: socket.socket, method: str, path: str, body: bytes) -> None:
        self.sock = sock
        self.method = method
        self.path = path
        self.body = body

    @property
    def message(self) -> dict[str, Any]:
        """The body as JSON."""
        return json.loads(self.body or b"{}")

    def answer(self, status: int, value: object = None, content_type: str = "application/json") -> None:
        """A whole answer with its length."""
        body = b"" if value is None else json.dumps(value).encode()
        head = f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n\r\n"
        self.sock.sendall(head.encode() + body)

    def begin_stream(self) -> None:
        """The head of an answer that goes on."""
        self.sock.sendall(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n"
        )

    def line(self, **member: object) -> None:
        """One line of a stream, as a chunk."""
        data = json.dumps(member).encode() + b"\n"
        self.sock.sendall(b"%x\r\n%s\r\n" % (len(data), data))


class SmallDaemon:
    """Serves until `close`. calls: what was asked, in order. holds: the streams that are open."""

    def __init__(self, home: Path, run: Path, problem: dict[str, Any] | None = None) -> None:
        self.home = home
        self.run = run
        self.calls: list[tuple[str, str, bytes]] = []
        self.holds: list[Call] = []
        self.lease = dict(LEASE)
        self.known_projects: set[str] = set()
        self.progress: list[str] = []
        #: answered to every call, while it is set
        self.problem = problem
        self.changed = threading.Condition()
        run.mkdir(parents=True, exist_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        with suppress(FileNotFoundError):
            (run / "toftd.sock").unlink()
        self.listener.bind(str(run / "toftd.sock"))
        self.listener.listen(16)
        self.thread = threading.Thread(target=self._accept)
        self.thread.start()

    def environment(self) -> dict[str, str]:
        """What a client needs to find this daemon."""
        return {"TOFT_HOME": str(self.home), "TOFT_RUN": str(self.run)}

    def close(self) -> None:
        """As kill -9 would: every connection breaks, the socket's file stays. Idempotent."""
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        for hold in self.holds:
            with suppress(OSError):
                hold.sock.shutdown(socket.SHUT_RDWR)
            hold.sock.close()
        self.holds.clear()

    def wait_for(self, method: str, path: str, count: int = 1) -> list[bytes]:
        """Wait until a call has been made `count` times; gives the bodies."""
        with self.changed:

            def bodies() -> list[bytes]:
                return [body for made, at, body in self.calls if (made, at) == (method, path)]

            assert self.changed.wait_for(lambda: len(bodies()) >= count, 20), self.calls
            return bodies()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with suppress(OSError):
                self._serve(sock)

    def _serve(self, sock: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            more = sock.recv(65536)
            if not more:
                sock.close()
                return
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
        length = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        while len(body) < length:
            body += sock.recv(65536)
        call = Call(sock, method, path, body)
        is_kept = self.handle(call)
        if not is_kept:
            sock.close()
        with self.changed:
            self.calls.append((method, path, body))
            self.changed.notify_all()

    def handle(self, call: Call) -> bool:
        """Answer; True when the connection is a hold and stays open."""
        if self.problem is not None:
            call.answer(self.problem["status"], self.problem, "application/problem+json")
        elif (call.method, call.path) == ("GET", "/v1/hello"):
            call.answer(
                200, {"version": "0.1.0", "pid": os.getpid(), "home": str(self.home), "started_at": "now"}
            )
        elif call.method == "PUT":
            self.known_projects.add(call.path.rpartition("/")[2])
            call.answer(204)
        elif (call.method, call.path) == ("POST", "/v1/leases"):
            return self._create(call)
        elif (call.method, call.path) == ("GET", "/v1/leases"):
            call.answer(200, {"leases": [self.lease]})
        elif call.method == "DELETE":
            call.answer(204)
        elif call.path.endswith("/hold"):
            call.begin_stream()
            self.holds.append(call)
            return True
        else:
            call.answer(200, self.lease)
        return False

    def _create(self, call: Call) -> bool:
        project = call.message["project"]
        if project is not None and project not in self.known_projects:
            problem = {"code": "TOFT-PROJECT-UNKNOWN", "status": 404, "facts": {"digest": project}}
            call.answer(404, problem, "application/problem+json")
            return False
        if not call.message["hold"]:
            call.answer(201, self.lease)
            return False
        call.begin_stream()
        for text in self.progress:
            call.line(progress=text)
        call.line(lease=self.lease)
        self.holds.append(call)
        return True


@contextmanager
def small_daemon(home: Path, problem: dict[str, Any] | None = None) -> Generator[SmallDaemon]:
    """A small daemon for one test."""
    daemon = SmallDaemon(home, home / "run", problem)
    try:
        yield daemon
    finally:
        daemon.close()
