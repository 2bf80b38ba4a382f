"""`toft bench storage`: objects up and down beside a bare server on the same disk and moto's S3 server."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, cast

import msgspec

from toft import settings as options
from toft.bench.clients import SqlSession
from toft.bench.ground import Ground, ground
from toft.bench.measure import Figure, distribution, single
from toft.host import processes
from toft.protocol.bundle import Bundle
from toft.protocol.lease import Lease

_FLOOR: Final = "a bare server of the same kind: the same bytes to and from files of the same disk"
_PEER: Final = "moto's S3 server"
_MB: Final = 1 << 20
#: ours may take so much longer: 60 percent of the floor's speed
_SLOWER: Final = 1 / 0.6
_CONFIG: Final = b'[storage]\nfile_size_limit = "8GiB"\n'
#: moto believes whoever signs at all
_ANYBODY: Final = (
    "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
)
_KEYS: Final = 100_000


class _Size(msgspec.Struct, frozen=True):
    """A size of objects: its name in figures, how often it is sent, and whether the floor binds."""

    name: str
    size: int
    rounds: int
    goal: bool


_SIZES: Final = (
    _Size("1kb", 1 << 10, 300, goal=False),
    _Size("1mb", _MB, 60, goal=True),
    _Size("1gb", 1 << 30, 2, goal=True),
)


def measure(is_quick: bool, report: Callable[[str], None]) -> list[Figure]:
    """All figures of this bench."""
    figures: list[Figure] = []
    with ExitStack() as stack:
        land = stack.enter_context(ground(pool_size="1", pool_cloned="0", sleep_after="0", workers="1"))
        lease = land.lease(Bundle({"supabase/config.toml": _CONFIG}, {}))
        ours = _Store(lease.http_port, "/storage/v1/object/things", f"Bearer {lease.service_role_key}")
        _post(lease, "/bucket", {"name": "things"})
        bare = _Store(stack.enter_context(_bare(land.home)), "")
        peer = None
        if importlib.util.find_spec("moto") is not None:
            peer = _Store(stack.enter_context(_moto(land.home)), "/things", _ANYBODY)
            peer.make_bucket()
        for size in _SIZES:
            if is_quick and size.size > 64 * _MB:
                size = msgspec.structs.replace(size, rounds=1)
            report(f"objects of {size.name}")
            figures += _compare(size, [store for store in (ours, bare, peer) if store is not None])
        report("memory while a large object passes through")
        figures.append(_memory(land, ours, 1 if is_quick else 5))
        report("a list of 100,000 objects")
        figures.append(_list(land, lease))
    return figures


def _compare(size: _Size, stores: Sequence[_Store]) -> list[Figure]:
    """Ours first, then the floor, then perhaps the peer; in turns, so that all meet the same machine."""
    puts: list[list[float]] = [[] for _ in stores]
    gets: list[list[float]] = [[] for _ in stores]
    for store in stores:
        store.put("warm", min(size.size, 4 * _MB))
        store.get("warm")
    for _ in range(size.rounds):
        for place, store in enumerate(stores):
            puts[place].append(store.put("x", size.size))
            gets[place].append(store.get("x"))
    figures: list[Figure] = []
    for name, samples in (("put", puts), ("get", gets)):
        figures.append(
            distribution(
                f"storage.{name}.{size.name}",
                "ms",
                samples[0],
                floor=(_FLOOR, samples[1]),
                goal={"ratio": _SLOWER} if size.goal else None,
            )
        )
        if len(samples) > 2:
            figures.append(
                distribution(
                    f"storage.{name}.{size.name}.peer",
                    "ms",
                    samples[0],
                    floor=(_PEER, samples[2]),
                    goal={"ratio": 1.0},
                )
            )
    return figures


def _memory(land: Ground, store: _Store, gigabytes: int) -> Figure:
    """How much more memory the gateway's worker had at its peak than before, in megabytes."""
    # its launcher may have the same command line, but not its memory
    worker = max((pid for pid in processes.all_pids() if _serves(pid, land)), key=_peak_mb)
    before = _peak_mb(worker)
    store.put("large", gigabytes << 30)
    store.get("large")
    return single(f"storage.memory.{gigabytes}gb", "MB", _peak_mb(worker) - before, at_most=16)


def _serves(pid: int, land: Ground) -> bool:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"toft.gateway.worker" in line and str(land.daemon.settings.run).encode() in b"\0".join(line)


def _peak_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} tells no peak")


def _list(land: Ground, lease: Lease) -> Figure:
    """Pages of a bucket with 100,000 objects: top level, inside folders, deep offsets, and whole walks."""
    sql = SqlSession(f"{land.daemon.settings.run}/b/{lease.backend_id}", 5432, "postgres", lease.password)
    sql.query("insert into storage.buckets (id, name) values ('many', 'many')")
    sql.query(
        "insert into storage.objects (bucket_id, name, version, metadata) select 'many',"
        " case when n % 2 = 0 then 'flat/' || lpad(n::text, 6, '0')"
        " else 'f' || n % 500 || '/sub' || n % 7 || '/' || n end,"
        """ gen_random_uuid()::text, '{"size": 1, "mimetype": "text/plain"}'"""
        f" from generate_series(1, {_KEYS}) n"
    )
    sql.close()
    samples: list[float] = []

    def page(path: str, body: dict[str, object]) -> dict[str, object]:
        began = time.perf_counter()
        answer = _post(lease, path, body)
        samples.append((time.perf_counter() - began) * 1e3)
        return cast("dict[str, object]", answer) if isinstance(answer, dict) else {}

    page("/object/list/many", {"prefix": ""})
    samples.clear()
    for number in range(20):
        page("/object/list/many", {"prefix": "", "limit": 100, "offset": number * 20})
        page("/object/list/many", {"prefix": f"f{number * 7 + 1}", "limit": 100})
        page("/object/list/many", {"prefix": "flat", "limit": 100, "offset": number * 2500})
        page("/object/list/many", {"prefix": "", "limit": 100, "sortBy": {"column": "name", "order": "desc"}})
    for options_of_walk in ({"with_delimiter": True}, {"with_delimiter": False}):
        cursor: object = ""
        for _ in range(40):
            answer = page("/object/list-v2/many", {"limit": 500, "cursor": cursor, **options_of_walk})
            cursor = answer.get("nextCursor")
            if not cursor:
                break
    return distribution("storage.list100k", "ms", samples, goal={"p95": 50.0})


def _post(lease: Lease, path: str, body: object) -> object:
    raw = json.dumps(body).encode()
    head = f"content-type: application/json\r\nauthorization: Bearer {lease.service_role_key}\r\n"
    with _connect(lease.http_port) as sock:
        sock.sendall(
            f"POST /storage/v1{path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{head}"
            f"content-length: {len(raw)}\r\n\r\n".encode()
            + raw
        )
        answer = b"".join(iter(lambda: sock.recv(1 << 18), b""))
    head, _, content = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise RuntimeError(answer[:300].decode(errors="replace"))
    return json.loads(content)


class _Store:
    """One server: as plain a client as there is, over one connection if the server lets it."""

    def __init__(self, port: int, root: str, authorization: str = "") -> None:
        self._port = port
        self._root = root
        self._fields = f"authorization: {authorization}\r\n" if authorization else ""
        self._sock = _connect(port)
        self._scratch = bytearray(_MB)
        self._piece = os.urandom(_MB)

    def make_bucket(self) -> None:
        """As S3 has it."""
        head = f"PUT {self._root} HTTP/1.1\r\nhost: x\r\n{self._fields}content-length: 0\r\n\r\n"
        self._ask(head.encode())

    def put(self, key: str, size: int) -> float:
        """Milliseconds to send so many bytes and have them acknowledged."""
        began = time.perf_counter()
        self._sock.sendall(
            f"PUT {self._root}/{key} HTTP/1.1\r\nhost: x\r\n{self._fields}"
            f"content-type: application/octet-stream\r\ncontent-length: {size}\r\n\r\n".encode()
        )
        rest = size
        while rest:
            sent = self._piece if rest >= _MB else self._piece[:rest]
            self._sock.sendall(sent)
            rest -= len(sent)
        self._ask(b"")
        return (time.perf_counter() - began) * 1e3

    def get(self, key: str) -> float:
        """Milliseconds to read all of it."""
        began = time.perf_counter()
        self._ask(f"GET {self._root}/{key} HTTP/1.1\r\nhost: x\r\n{self._fields}\r\n".encode())
        return (time.perf_counter() - began) * 1e3

    def _ask(self, request: bytes) -> None:
        if request:
            self._sock.sendall(request)
        buffer = b""
        while (end := buffer.find(b"\r\n\r\n")) < 0:
            data = self._sock.recv(1 << 16)
            if not data:
                raise ConnectionError("the server closed the connection")
            buffer += data
        head = buffer[:end].lower()
        if not head.startswith((b"http/1.1 2", b"http/1.0 2")):
            raise RuntimeError(buffer[:300].decode(errors="replace"))
        at = head.find(b"content-length:")
        rest = int(head[at + 15 :].split(b"\r", 1)[0]) if at >= 0 else 0
        rest -= len(buffer) - end - 4
        while rest > 0:
            count = self._sock.recv_into(self._scratch, min(rest, _MB))
            if not count:
                raise ConnectionError("the server closed the connection")
            rest -= count
        if b"connection: close" in head:
            self._sock.close()
            self._sock = _connect(self._port)


def _connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), timeout=120)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


@contextmanager
def _bare(home: Path) -> Generator[int]:
    """The floor's server; its port."""
    folder = home / "bare"
    folder.mkdir()
    line = [options.python(), "-P", "-m", "toft.bench.bare_store", str(folder)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())
        assert server.stdin is not None
        server.stdin.close()


@contextmanager
def _moto(home: Path) -> Generator[int]:
    """The peer's server, if this Python has it; its port."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = int(sock.getsockname()[1])
    line = [options.python(), "-P", "-m", "moto.server", "-p", str(port)]
    environ = {**options.environment(), "TMPDIR": str(home), "MOTO_S3_CUSTOM_ENDPOINTS": ""}
    with subprocess.Popen(line, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(200):
                try:
                    _connect(port).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield port
        finally:
            server.terminate()
