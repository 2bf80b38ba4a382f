"""Servers that the bench compares with, each a process of its own for as long as it is needed."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec

from toft import settings as options

#: whether there is what `peer.py` is written with
HAS_PEER = all(find_spec(name) for name in ("fastapi", "uvicorn"))
_PATIENCE_SECONDS = 30.0


@contextmanager
def bare_server() -> Generator[int]:
    """The port of a server that answers all alike."""
    with _running("toft.bench.bare", {}) as port:
        yield port


@contextmanager
def peer_server(environ: Mapping[str, str]) -> Generator[int]:
    """The port of the usual stack."""
    with _running("toft.bench.peer", environ) as port:
        yield port


@contextmanager
def _running(module: str, environ: Mapping[str, str]) -> Generator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    line = [options.python(), "-m", module, str(port)]
    server = subprocess.Popen(line, env={**options.environment(), **environ})
    try:
        _wait_for(port)
        yield port
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise TimeoutError(f"nobody listens on port {port}")
