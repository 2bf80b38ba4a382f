"""`toft bench backend`: how long a caller waits for a backend, from each state that a pool can be in."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from toft import settings as options
from toft.bench import floor
from toft.bench.clients import HttpSession, SqlSession
from toft.bench.ground import Ground, ground
from toft.bench.measure import Figure, distribution, percentile, single
from toft.bench.processes import processes_of
from toft.protocol.bundle import Bundle
from toft.protocol.lease import Lease

#: Started and cloned ones that stand ready while leases from the pool are timed.
POOL, CLONED = 4, 2
#: Where starting or connecting to a bare postgres takes longer than a goal supposes, this ratio to it counts.
NEAR_FLOOR = 1.6

type Report = Callable[[str], None]

#: So long the leftovers of the last round may take; what they cost shows in `backend.burst8`.
CALM_SECONDS = 0.2

_CONNECT = "connect and query on the running server's own Unix socket"
_START = "start postgres unconfined on a ready directory, connect and query"
_PYTHON = "python -c pass"


def measure(is_quick: bool, report: Report) -> list[Figure]:
    """All figures of this bench."""
    rounds = 20 if is_quick else 200
    figures: list[Figure] = []
    with ground(pool_size=str(POOL), pool_cloned=str(CLONED), sleep_after="0") as land:
        report("leases from a pool of started backends")
        warm = _warm(land, rounds, None, "/rest/v1/")
        figures += [
            _near("backend.warm", warm.sql, (_CONNECT, warm.bare), {"p50": 5, "p99": 40}),
            distribution("backend.warm.rest", "ms", warm.rest, goal={"p50": 10, "p99": 40}),
        ]
        report("the same with 100 migrations")
        migrated = _warm(land, rounds // 2, migrated_bundle(100), "/rest/v1/t_1?select=id&limit=1")
        figures += [
            _near(
                "backend.migrated100.warm",
                migrated.sql,
                (_CONNECT, migrated.bare),
                {"p50": 5, "p99": 40},
            ),
            distribution("backend.migrated100.warm.rest", "ms", migrated.rest, goal={"p50": 10, "p99": 40}),
        ]
        report("release")
        figures.append(distribution("backend.release", "ms", _release(land, rounds // 2), goal={"p50": 50}))
        report("eight callers at once")
        figures.append(
            single("backend.burst8", "leases/s", _burst(land, rounds // 2), n=rounds // 2, at_least=30)
        )
        report("toft run -- true")
        figures.append(_run_true(land, 10 if is_quick else 40, percentile(warm.sql, 0.5)))
    with ground(pool_size="0", pool_cloned="4", sleep_after="0") as land:
        report("leases from a pool of cloned directories")
        cloned = _each(land, rounds // 4, cloned=4)
        bare = floor.starts(land.home, max(10, rounds // 10))
        figures.append(_near("backend.cloned", cloned, (_START, bare), {"p50": 35}))
    with ground(pool_size="0", pool_cloned="0", sleep_after="0") as land:
        report("leases without a pool")
        cold = _each(land, rounds // 4)
        bare = floor.starts(land.home, max(10, rounds // 10))
        figures.append(_near("backend.cold", cold, (_START, bare), {"p50": 60}))
    with ground(sleep_after="1", pool_size="0", pool_cloned="0") as land:
        report("waking what sleeps")
        woken = _wake(land, 8 if is_quick else 30)
        bare = floor.starts(land.home, max(10, rounds // 10))
        figures.append(_near("backend.wake", woken, (_START, bare), {"p50": 30}))
    return figures


def _near(name: str, samples: list[float], floor: tuple[str, list[float]], goal: dict[str, float]) -> Figure:
    """A figure whose goal for p50 is also met near its floor."""
    return distribution(name, "ms", samples, floor=floor, goal=goal, or_ratio=NEAR_FLOOR)


def migrated_bundle(count: int) -> Bundle:
    """A project of so many small migrations: tables with RLS, a policy and an index each."""
    files = {
        f"supabase/migrations/{20260101000000 + number}_t.sql": (
            f"create table t_{number} (id bigint generated always as identity primary key,\n"
            "  owner uuid, body text);\n"
            f"alter table t_{number} enable row level security;\n"
            f"create policy own on t_{number} for select using (owner is null or owner = auth.uid());\n"
            f"create index on t_{number} (owner);\n"
        ).encode()
        for number in range(1, count + 1)
    }
    return Bundle(files, {})


class _Warm:
    def __init__(self) -> None:
        self.sql: list[float] = []
        self.rest: list[float] = []
        self.bare: list[float] = []


def _warm(land: Ground, rounds: int, bundle: Bundle | None, path: str) -> _Warm:
    """Alternate on a full pool: lease to first SQL answer, lease to first REST answer, bare connect.

    What callers cost each other, `backend.burst8` shows.
    """
    seen = _Warm()
    template = land.template_of(bundle)
    for _ in range(rounds):
        _calm(land, template)
        seen.sql.append(_timed(lambda: land.lease(bundle), _first_query))
        _calm(land, template)
        seen.rest.append(_timed(lambda: land.lease(bundle), lambda lease: _first_get(lease, path)))
        _calm(land, template)
        lease = land.lease(bundle)
        began = time.perf_counter()
        session = SqlSession(
            f"{land.daemon.settings.run}/b/{lease.backend_id}",
            5432,
            lease.user,
            lease.password,
        )
        session.query("select 1")
        seen.bare.append((time.perf_counter() - began) * 1e3)
        session.close()
        land.release_all()
    return seen


def _calm(land: Ground, template: str) -> None:
    """The pool is full and nothing is going on."""
    land.settle(template, ready=POOL, cloned=CLONED)
    time.sleep(CALM_SECONDS)


def _timed(take: Callable[[], Lease], use: Callable[[Lease], None]) -> float:
    began = time.perf_counter()
    use(take())
    return (time.perf_counter() - began) * 1e3


def _first_query(lease: Lease) -> None:
    session = SqlSession("127.0.0.1", lease.db_port, lease.user, lease.password)
    session.query("select 1")
    session.close()


def _first_get(lease: Lease, path: str) -> None:
    session = HttpSession(lease.http_port)
    status, body = session.get(path, lease.anon_key)
    session.close()
    if status != 200:
        raise RuntimeError(f"GET {path} answered {status}: {body[:200]!r}")


def _each(land: Ground, rounds: int, cloned: int = 0) -> list[float]:
    template = land.template_of()
    samples: list[float] = []
    for _ in range(rounds):
        land.settle(template, cloned=cloned)
        time.sleep(CALM_SECONDS)
        taken: list[Lease] = []

        def take(taken: list[Lease] = taken) -> Lease:
            taken.append(land.lease())
            return taken[0]

        samples.append(_timed(take, _first_query))
        land.release(taken[0])
    return samples


def _release(land: Ground, rounds: int) -> list[float]:
    """From the call to: processes, socket and directory gone."""
    samples: list[float] = []
    template = land.template_of()
    for _ in range(rounds):
        land.settle(template, ready=1)
        lease = land.lease()
        name = lease.backend_id
        pids = processes_of(str(land.home / "backends" / name))
        places = [land.home / "backends" / name, Path(land.daemon.settings.run) / "b" / name]
        began = time.perf_counter()
        land.release(lease)
        while any(Path(f"/proc/{pid}").exists() for pid in pids) or any(place.exists() for place in places):
            time.sleep(0.0005)
        samples.append((time.perf_counter() - began) * 1e3)
    return samples


def _burst(land: Ground, total: int) -> float:
    land.settle(land.template_of(), ready=4)

    def one(_: int) -> None:
        lease = land.lease()
        _first_query(lease)
        land.release(lease)

    began = time.perf_counter()
    with ThreadPoolExecutor(8) as callers:
        list(callers.map(one, range(total)))
    return total / (time.perf_counter() - began)


def _run_true(land: Ground, rounds: int, lease_ms: float) -> Figure:
    """Whole processes, alternating with bare Python; the daemon is warm and its pool full."""
    python = options.python()
    toft = [python, "-m", "toft.cli.main"]
    script = Path(python).with_name("toft")
    if script.exists():
        toft = [str(script)]
    samples: list[float] = []
    bare: list[float] = []
    template = land.template_of()
    for _ in range(rounds):
        land.settle(template, ready=1)
        began = time.perf_counter()
        subprocess.run(
            [*toft, "run", "--no-migrations", "--", "true"],
            check=True,
            env=dict(land.daemon.environ),
            capture_output=True,
        )
        samples.append((time.perf_counter() - began) * 1e3)
        began = time.perf_counter()
        subprocess.run([python, "-c", "pass"], check=True, env=dict(land.daemon.environ))
        bare.append((time.perf_counter() - began) * 1e3)
    bound = 3 * percentile(bare, 0.5) + lease_ms
    return distribution("run.true", "ms", samples, floor=(_PYTHON, bare), goal={"p50": round(bound, 2)})


def _wake(land: Ground, count: int) -> list[float]:
    """First query of a backend whose postmaster has been stopped for idleness."""
    leases = [land.lease() for _ in range(count)]
    for lease in leases:
        _first_query(lease)
    deadline = time.monotonic() + 60
    while any(processes_of(str(land.home / "backends" / lease.backend_id)) for lease in leases):
        if time.monotonic() > deadline:
            raise TimeoutError("the idle backends did not go to sleep")
        time.sleep(0.1)
    samples = [_timed(lambda lease=lease: lease, _first_query) for lease in leases]
    for lease in leases:
        land.release(lease)
    return samples
