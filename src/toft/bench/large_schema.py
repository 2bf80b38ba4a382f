"""A schema of 2000 tables and as many foreign keys: what its cache costs, and the request after a change."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc

from toft.bench import sent
from toft.bench.clients import HttpSession, SqlSession
from toft.bench.database import Place
from toft.bench.ground import Ground
from toft.bench.measure import Figure, single
from toft.protocol.bundle import Bundle

TABLES = 2000
_ROUNDS = 5
_FILES = 10


def measure_large_schema(land: Ground) -> list[Figure]:
    """Load time and size of the cache, and the first request after DDL."""
    lease = land.lease(
        Bundle({f"supabase/migrations/{n + 1:03}_wide.sql": _tables(n) for n in range(_FILES)}, {})
    )
    place = Place(f"{land.daemon.settings.run}/b/{lease.backend_id}", lease.password)
    seconds, megabytes = asyncio.run(_load(place))
    sql = SqlSession("127.0.0.1", lease.db_port, "postgres", lease.password)
    http = HttpSession(lease.http_port)
    samples: list[float] = []
    for number in range(_ROUNDS):
        sql.query(f"create table extra_{number} (id int primary key)")
        began = time.perf_counter()
        status, body = http.get(f"/rest/v1/extra_{number}?select=id", lease.anon_key)
        samples.append((time.perf_counter() - began) * 1e3)
        if status != 200:
            raise RuntimeError(f"the new table answered {status}: {body[:200]!r}")
    return [
        single("api.schema2000.load", "s", seconds, n=_ROUNDS, at_most=1),
        single("api.schema2000.size", "MB", megabytes, at_most=20),
        single("api.schema2000.first_request_after_ddl", "ms", sorted(samples)[_ROUNDS // 2], n=_ROUNDS),
    ]


def _tables(part: int) -> bytes:
    """A part of the tables: one transaction has not room for the locks of all."""
    numbers = range(part * TABLES // _FILES, (part + 1) * TABLES // _FILES)
    return "".join(
        f"create table t{n} (id int primary key, up int {f'references t{n - 1}' if n else ''}, body text);\n"
        for n in numbers
    ).encode()


async def _load(place: Place) -> tuple[float, float]:
    """The median load's seconds, and the cache's megabytes."""
    connection = await place.connect()
    samples: list[float] = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        await sent.load_schema(connection)
        samples.append(time.perf_counter() - began)
    gc.collect()
    tracemalloc.start()
    schema = await sent.load_schema(connection)
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    connection.close()
    if len(schema.tables) < TABLES:
        raise RuntimeError(f"the cache has {len(schema.tables)} tables")
    return sorted(samples)[_ROUNDS // 2], size / 2**20
