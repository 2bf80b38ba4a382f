"""`toft bench fork`: copies of running backends that are written to, returns to earlier points, in place.

On a disk that shares blocks (TOFT_BENCH_DIR on XFS or btrfs) the figures of forks are named `….reflink`.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import msgspec

from toft.bench.clients import SqlSession
from toft.bench.ground import Ground, ground
from toft.bench.measure import Figure, distribution, single
from toft.protocol.fork import Forks
from toft.protocol.lease import Lease

type Report = Callable[[str], None]
type Goal = dict[str, float]

_COPY = "cp -r of the parent's data directory"
#: name → megabytes of rows, rounds, goals: total with shared blocks, total, pause
_SIZES: tuple[tuple[str, int, int, tuple[Goal, Goal, Goal]], ...] = (
    ("10mb", 10, 40, ({"p50": 90}, {"p50": 90}, {"p50": 30})),
    ("200mb", 200, 10, ({"p50": 400}, {"ratio": 1.3}, {"p50": 150})),
    ("1gb", 1000, 4, ({}, {"ratio": 1.3}, {})),
)
_LOAD = """\
create table ballast as select i as id, 0 as n, repeat('x', 950) as body from generate_series(1, {rows}) as i;
create index on ballast (id)
"""


def measure(is_quick: bool, report: Report) -> list[Figure]:
    """All figures of this bench."""
    figures: list[Figure] = []
    with ground(pool_size="0", pool_cloned="0", sleep_after="0", disk_quota="16GB") as land:
        for name, megabytes, rounds, goals in _SIZES[: 2 if is_quick else 3]:
            report(f"forks of a backend with {megabytes} MB under write load")
            figures += _forks(land, name, megabytes, max(3, rounds // 4) if is_quick else rounds, goals)
        report("twenty forks at once")
        figures.append(_burst(land))
        report("checkpoint, restore and reset of 10 MB")
        figures += _returns(land, 8 if is_quick else 40)
    return figures


def _forks(
    land: Ground, name: str, megabytes: int, rounds: int, goals: tuple[Goal, Goal, Goal]
) -> list[Figure]:
    parent = _filled(land, megabytes)
    totals: list[float] = []
    pauses: list[float] = []
    bare: list[float] = []
    is_shared = False
    with _written_to(parent, megabytes * 1000):
        _fork(land, parent)  # the first one starts the process that copies
        for _ in range(rounds):
            began = time.perf_counter()
            made = _fork(land, parent, keep=True)
            _query(made.forks[0], "select 1")
            totals.append((time.perf_counter() - began) * 1e3)
            pauses.append(made.pause_ms)
            is_shared = is_shared or made.is_shared
            land.release(made.forks[0])
            bare.append(_bare_copy(land, parent))
    land.release(parent)
    name = f"fork.{name}.reflink" if is_shared else f"fork.{name}"
    shared_goal, plain_goal, pause_goal = goals
    return [
        distribution(
            name, "ms", totals, floor=(_COPY, bare), goal=(shared_goal if is_shared else plain_goal) or None
        ),
        distribution(f"{name}.parent_pause", "ms", pauses, goal=pause_goal or None),
        single(f"{name}.parent_pause_longest", "ms", max(pauses), n=len(pauses)),
    ]


def _burst(land: Ground) -> Figure:
    parent = _filled(land, 10)
    samples: list[float] = []
    for _ in range(3):
        began = time.perf_counter()
        for one in _fork(land, parent, count=20, keep=True).forks:
            _query(one, "select 1")
        samples.append((time.perf_counter() - began) * 1e3)
        land.release_all()
        parent = _filled(land, 10)
    land.release(parent)
    return distribution("fork.burst20", "ms", samples)


def _returns(land: Ground, rounds: int) -> list[Figure]:
    lease = _filled(land, 10)
    path = f"/v1/leases/{lease.id}"
    land.daemon.call("POST", path + "/checkpoints", {"name": "full"})
    restores: list[float] = []
    resets: list[float] = []
    for _ in range(rounds):
        for samples, call in ((restores, "/checkpoints/full/restore"), (resets, "/reset")):
            began = time.perf_counter()
            land.daemon.call("POST", path + call)
            samples.append((time.perf_counter() - began) * 1e3)
            _query(lease, "select 1")
    land.release(lease)
    return [
        distribution("checkpoint.restore", "ms", restores, goal={"p50": 40}),
        distribution("reset", "ms", resets, goal={"p50": 40}),
    ]


def _filled(land: Ground, megabytes: int) -> Lease:
    lease = land.lease()
    _query(lease, _LOAD.format(rows=megabytes * 1000))
    return lease


def _fork(land: Ground, parent: Lease, *, count: int = 1, keep: bool = False) -> Forks:
    answer = land.daemon.call(
        "POST", f"/v1/leases/{parent.id}/fork", {"count": count, "ttl_seconds": 3600}, patience_seconds=None
    )
    made = msgspec.convert(answer, Forks)
    if not keep:
        for one in made.forks:
            land.release(one)
    return made


@contextmanager
def _written_to(lease: Lease, rows: int) -> Generator[None]:
    """Two sessions that update rows all over the table, one transaction after the other."""
    stop = threading.Event()

    def write(number: int) -> None:
        session = SqlSession("127.0.0.1", lease.db_port, lease.user, lease.password)
        while not stop.is_set():
            session.query(
                f"update ballast set n = n + {number} where id = 1 + floor(random() * {rows})::int;"
                "select pg_sleep(0.001)"
            )
        session.close()

    writers = [threading.Thread(target=write, args=(number,)) for number in (1, 2)]
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        stop.set()
        for writer in writers:
            writer.join()


def _bare_copy(land: Ground, parent: Lease) -> float:
    """What copying the same files costs: not a usable copy, and nothing is started on it."""
    source, target = land.home / "backends" / parent.backend_id / "pgdata", land.home / "bare"
    began = time.perf_counter()
    subprocess.run(["cp", "-r", str(source), str(target)], check=False, capture_output=True)
    took = (time.perf_counter() - began) * 1e3
    subprocess.run(["rm", "-rf", str(target)], check=True)
    return took


def _query(lease: Lease, sql: str) -> None:
    session = SqlSession("127.0.0.1", lease.db_port, lease.user, lease.password)
    session.query(sql)
    session.close()
