"""The plainest clients there are, so that what is timed is Toft."""

from __future__ import annotations

import os
import socket

from toft.pg import wire
from toft.pg.login import Login

PATIENCE_SECONDS = 30.0


class SqlSession:
    """A blocking Postgres session over TCP or, when `host` is a path, a Unix socket. Raises OSError."""

    def __init__(self, host: str, port: int, user: str, password: str) -> None:
        if host.startswith("/"):
            self._sock = socket.socket(socket.AF_UNIX)
            self._sock.settimeout(PATIENCE_SECONDS)
            self._sock.connect(f"{host}/.s.PGSQL.{port}")
        else:
            self._sock = socket.create_connection((host, port), timeout=PATIENCE_SECONDS)
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._is_ready = False
        self._login = Login(user, password, os.urandom(18))
        self._replies = wire.Replies(self._ready, self._other)
        self._sock.sendall(wire.startup({"user": user, "database": "postgres"}))
        self._finish()

    def query(self, sql: str) -> list[wire.Row]:
        """Rows of the last statement. Raises OSError with the server's message."""
        self._sock.sendall(wire.query(sql))
        return self._finish()

    def close(self) -> None:
        """End the session."""
        self._sock.close()

    def _finish(self) -> list[wire.Row]:
        self._is_ready = False
        while not self._is_ready:
            data = self._sock.recv(1 << 16)
            if not data:
                results, error = self._replies.take()
                raise ConnectionError((error or {}).get("M", "the server closed the connection"))
            self._replies.feed(data)
        results, error = self._replies.take()
        if error:
            raise ConnectionError(error.get("M", "error"))
        return results[-1].rows if results else []

    def _ready(self) -> None:
        self._is_ready = True

    def _other(self, kind: int, body: bytes) -> None:
        if kind == 0x52:  # R: the log-in's questions
            reply = self._login.reply(body)
            if reply is not None:
                self._sock.sendall(reply)


class HttpSession:
    """One keep-alive HTTP connection to a loopback port."""

    def __init__(self, port: int) -> None:
        self._sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._host = f"127.0.0.1:{port}"

    def get(self, path: str, key: str) -> tuple[int, bytes]:
        """Status and body of a GET with this API key."""
        head = f"GET {path} HTTP/1.1\r\nhost: {self._host}\r\n"
        self._sock.sendall(f"{head}apikey: {key}\r\nauthorization: Bearer {key}\r\n\r\n".encode())
        return self._read()

    def post(self, path: str, key: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of a POST of JSON with this API key."""
        head = f"POST {path} HTTP/1.1\r\nhost: {self._host}\r\napikey: {key}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self._sock.sendall(head.encode() + body)
        return self._read()

    def close(self) -> None:
        """End the connection."""
        self._sock.close()

    def _read(self) -> tuple[int, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        status = int(lines[0].split(" ")[1])
        if fields.get("transfer-encoding") == "chunked":
            while not body.endswith(b"0\r\n\r\n"):
                body += self._more()
        else:
            length = int(fields.get("content-length", "0"))
            while len(body) < length:
                body += self._more()
        return status, body

    def _more(self) -> bytes:
        data = self._sock.recv(1 << 16)
        if not data:
            raise ConnectionError("the server closed the connection")
        return data
