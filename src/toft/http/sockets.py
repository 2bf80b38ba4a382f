"""Sockets to serve on, opened apart from serving them, so that several can be had or none."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

BACKLOG: Final = 1024


def bind_port(host: str, port: int) -> socket.socket:
    """A TCP socket that listens on `host:port` (0: any free port). Raises OSError, EADDRINUSE if it is taken.

    It listens at once: two sockets that are merely bound may share a port. Clients wait to be accepted.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


def bind_path(path: Path, mode: int) -> socket.socket:
    """A Unix socket file of that mode that listens: where the file is, somebody accepts.

    One that is there is replaced, so whoever calls this knows that nobody else serves it.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    fresh = path.with_name(path.name + ".new")
    try:
        fresh.unlink(missing_ok=True)
        sock.bind(str(fresh))
        fresh.chmod(mode)
        sock.listen(BACKLOG)
        fresh.replace(path)
    except BaseException:
        sock.close()
        raise
    return sock
