"""`toft bench api`: requests a second through the gateway, beside pgbench pipelining the same statements.

Ours, the floor and the usual stack take turns on one Postgres, several rounds of each, so that a busy machine
slows all of them. CPU is counted by process: unlike rates, it does not depend on what else has to share the
machine's cores.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from statistics import mean
from typing import Final

from toft.bench import database
from toft.bench.cpu import CpuMeter
from toft.bench.ground import Ground, ground
from toft.bench.large_schema import measure_large_schema
from toft.bench.load import WRK, Load, Wanted, put_load
from toft.bench.measure import Figure, single
from toft.bench.memory import measure_memory
from toft.bench.pgbench import Pgbench
from toft.bench.plans import measure_plans
from toft.bench.sent import header_fields
from toft.bench.servers import HAS_PEER, bare_server, peer_server
from toft.bench.subjects import ROW, SCHEMA, SUBJECTS, Subject
from toft.engine.binaries import find_engines
from toft.pg.wire import Statement
from toft.protocol.bundle import Bundle
from toft.tokens.jwt import KeyRing

CONNECTIONS: Final = 16
_ROUNDS: Final = 3
_FLOOR: Final = "pgbench pipelining the same settings and statement on 4 connections"
_PEER: Final = "FastAPI, asyncpg and uvicorn on 4 connections"
_CLAIMS: Final = {"sub": "00000000-0000-0000-0000-000000000001", "role": "authenticated"}


def measure(is_quick: bool, report: Callable[[str], None]) -> list[Figure]:
    """All figures of this bench."""
    seconds = 1.0 if is_quick else 4.0
    report(
        "with wrk"
        if WRK
        else "without wrk: the load is made in Python, which takes CPU from what is measured"
    )
    with ground(pool_size="1", pool_cloned="0", sleep_after="0", workers="1") as land:
        bench = ApiBench(land, seconds)
        figures = [bench.bare_http()]
        for subject in SUBJECTS:
            report(subject.name)
            figures += bench.compare(subject)
        report("the driver alone")
        figures.append(bench.driver())
        report("sixty-four clients")
        figures += bench.crowd()
        report("plans, memory, a schema of 2000 tables")
        figures.append(asyncio.run(measure_plans(bench.place)))
        figures.append(measure_memory(bench.meter, bench.mixed, 4 * seconds, report))
        figures += measure_large_schema(land)
    return figures


class ApiBench:
    """One lease with the bench's tables, and all that is compared on it."""

    def __init__(self, land: Ground, seconds: float) -> None:
        self._land = land
        self._seconds = seconds
        self.lease = land.lease(Bundle({"supabase/migrations/1_bench.sql": SCHEMA.encode()}, {}))
        self.place = database.Place(
            f"{land.daemon.settings.run}/b/{self.lease.backend_id}", self.lease.password
        )
        self.meter = CpuMeter(str(land.daemon.settings.run), self.lease.backend_id)
        claims = _CLAIMS | {"exp": int(time.time()) + 86_400}
        self._token = KeyRing(self.lease.jwt_secret).sign(claims)
        self._pgbench = Pgbench(find_engines(land.home, None)[0], land.home, self.place.environ)

    def wanted(self, subject: Subject) -> Wanted:
        """What a client sends."""
        fields = [(name.decode(), value.decode()) for name, value in header_fields(subject)]
        fields += [("apikey", self.lease.anon_key), ("authorization", f"Bearer {self._token}")]
        path = f"/rest/v1{subject.path}?{subject.query}"
        return Wanted(subject.method, (path,), tuple(fields), subject.body)

    def mixed(self, paths: Sequence[str], seconds: float) -> Load:
        """Load by many kinds of reads."""
        wanted = self.wanted(ROW)
        every = tuple("/rest/v1" + path.replace(" ", "%20") for path in paths)
        return put_load(
            Wanted("GET", every, wanted.fields), self.lease.http_port, CONNECTIONS, seconds, self._land.home
        )

    def bare_http(self) -> Figure:
        """A server that does nothing."""
        with bare_server() as port:
            rate = self._load(self.wanted(ROW), port).rps
        return single("api.bare_http", "requests/s", rate)

    def compare(self, subject: Subject) -> list[Figure]:
        """Ours beside the floor and, where there is one, the usual stack."""
        statements = self._statements(subject)
        wanted, port = self.wanted(subject), self.lease.http_port
        self._load(wanted, port)  # plans are made, connections opened
        ours: list[Load] = []
        floor: list[float] = []
        worker_us: list[float] = []
        postgres_us: list[float] = []
        for _ in range(_ROUNDS):
            self.meter.start()
            load = self._load(wanted, port)
            worker, postgres = self.meter.stop()
            ours.append(load)
            worker_us.append(worker / load.count * 1e6)
            postgres_us.append(postgres / load.count * 1e6)
            floor.append(self._pgbench.rate(statements, self._seconds))
        rate = mean(load.rps for load in ours)
        figures = [
            single(
                subject.name,
                "requests/s",
                rate,
                n=sum(load.count for load in ours),
                floor=(_FLOOR, mean(floor)),
                at_least=10_000 if subject is ROW else None,
                ratio_at_least=subject.ratio_at_least,
            ),
            single(
                f"{subject.name}.worker",
                "us of CPU/request",
                mean(worker_us),
                at_most=100 if subject is ROW else None,
            ),
            single(f"{subject.name}.postgres", "us of CPU/request", mean(postgres_us)),
        ]
        if subject.times_peer is not None:
            figures.append(self._beside_peer(subject, wanted))
        return figures

    def driver(self) -> Figure:
        """Our driver without HTTP, with the statements of one row."""
        statements = self._statements(ROW)
        ours: list[float] = []
        floor: list[float] = []
        for _ in range(_ROUNDS):
            ours.append(database.drive(self.place, statements, self._seconds))
            floor.append(self._pgbench.rate(statements, self._seconds))
        return single(
            "api.driver",
            "transactions/s",
            mean(ours),
            n=_ROUNDS,
            floor=(_FLOOR, mean(floor)),
            ratio_at_least=0.75,
        )

    def crowd(self) -> list[Figure]:
        """Many clients at once."""
        load = put_load(self.wanted(ROW), self.lease.http_port, 64, 2 * self._seconds, self._land.home)
        return [
            Figure("api.row.64clients", "ms", load.count, p50=load.p50, p99=load.p99),
            single("api.p99_over_p50_at_64", "ratio", load.p99 / load.p50, n=load.count, at_most=6),
        ]

    def _beside_peer(self, subject: Subject, wanted: Wanted) -> Figure:
        name = f"{subject.name}.beside_fastapi"
        if not HAS_PEER:
            return Figure(name, "not measured: pip install fastapi uvicorn", 0)
        ours: list[float] = []
        theirs: list[float] = []
        with peer_server(self.place.environ | {"JWT_SECRET": self.lease.jwt_secret}) as port:
            self._load(wanted, port)
            for _ in range(_ROUNDS):
                ours.append(self._load(wanted, self.lease.http_port).rps)
                theirs.append(self._load(wanted, port).rps)
        return single(
            name,
            "requests/s",
            mean(ours),
            n=_ROUNDS,
            floor=(_PEER, mean(theirs)),
            ratio_at_least=subject.times_peer,
        )

    def _load(self, wanted: Wanted, port: int) -> Load:
        return put_load(wanted, port, CONNECTIONS, self._seconds, self._land.home)

    def _statements(self, subject: Subject) -> Sequence[Statement]:
        return asyncio.run(database.statements_of(self.place, subject, _CLAIMS))
