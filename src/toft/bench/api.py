"""`toft bench api`: requests a second through the gateway, beside pgbench pipelining the same work."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Callable

import msgspec

from toft import settings as options
from toft.bench.clients import HttpSession, SqlSession
from toft.bench.ground import Ground, ground
from toft.bench.load import Load
from toft.bench.measure import Figure, single
from toft.engine.binaries import find_engines
from toft.protocol.bundle import Bundle
from toft.protocol.lease import Lease

CONNECTIONS = 16
_FLOOR = "pgbench pipelining the same settings and a statement of the same shape"

_SCHEMA = """
create table owner (id int primary key, name text not null);
create table item (
  id int primary key, owner_id int not null references owner, name text not null, price numeric, tags jsonb,
  user_id uuid, made_at timestamptz not null default '2026-01-01');
create index on item (owner_id);
create table log (id bigint generated always as identity primary key, line text not null);
alter table owner enable row level security;
alter table item enable row level security;
alter table log enable row level security;
create policy read on owner for select to authenticated using (true);
create policy read on item for select to authenticated
  using (user_id is null or user_id = (select auth.uid()));
create policy read on log for select to authenticated using (true);
create policy write on log for insert to authenticated with check (length(line) < 100);
insert into owner select n, 'owner ' || n from generate_series(1, 50) n;
insert into item select n, 1 + n % 50, 'item ' || n, n * 1.5, '{"a": 1}', null
  from generate_series(1, 5000) n;
analyze;
"""

_JSON = "select null as total, count(t) as page, coalesce(json_agg(t), '[]') as body from (%s) t"
_EMBED = (
    "select i.id, i.name, row_to_json(o.*)::jsonb as owner from item i "
    "left join lateral (select o.id, o.name from owner o where o.id = i.owner_id) o on true "
    "where i.id = 77 limit 1000"
)


class _Subject(msgspec.Struct, frozen=True):
    """One kind of request: what the client sends, and the statement that pgbench runs."""

    name: str
    method: str
    path: str
    sql: str
    ratio_at_least: float
    body: bytes = b""


_SUBJECTS = (
    _Subject(
        "api.row",
        "GET",
        "/rest/v1/item?select=id,name,price&id=eq.77",
        _JSON % "select id, name, price from item where id = 77 limit 1000",
        0.4,
    ),
    _Subject(
        "api.rows100",
        "GET",
        "/rest/v1/item?select=id,name,price&limit=100",
        _JSON % "select id, name, price from item limit 100",
        0.5,
    ),
    _Subject(
        "api.insert",
        "POST",
        "/rest/v1/log",
        "with src as (insert into log (line) select line from "
        """json_to_recordset('[{"line": "a line"}]'::json) as r(line text) returning 1) """
        "select count(*) from src",
        0.4,
        b'{"line":"a line"}',
    ),
    _Subject(
        "api.embed2",
        "GET",
        "/rest/v1/item?select=id,name,owner(id,name)&id=eq.77",
        _JSON % _EMBED,
        0.4,
    ),
)


def measure(is_quick: bool, report: Callable[[str], None]) -> list[Figure]:
    """All figures of this bench."""
    seconds = 2.0 if is_quick else 8.0
    figures: list[Figure] = []
    with ground(pool_size="1", pool_cloned="0", sleep_after="0", workers="1") as land:
        lease = land.lease(Bundle({"supabase/migrations/1_bench.sql": _SCHEMA.encode()}, {}))
        token = _sign_up(lease)
        pgbench = _Pgbench(land, lease)
        for subject in _SUBJECTS:
            report(subject.name)
            load = _load(lease, _request(lease, token, subject), CONNECTIONS, seconds)
            bare = pgbench.run(subject, seconds)
            more = _load(lease, _request(lease, token, subject), CONNECTIONS, seconds)
            rate, floor = (load.rps + more.rps) / 2, (bare + pgbench.run(subject, seconds)) / 2
            figures.append(
                single(
                    subject.name,
                    "requests/s",
                    rate,
                    n=int(rate * seconds * 2),
                    floor=(_FLOOR, floor),
                    ratio_at_least=subject.ratio_at_least,
                )
            )
        report("sixty-four clients")
        load = _load(lease, _request(lease, token, _SUBJECTS[0]), 64, seconds)
        figures.append(
            single("api.p99_over_p50_at_64", "ratio", load.p99 / load.p50, n=int(load.rps * seconds))
        )
        report("a schema of 2000 tables")
        figures.append(_schema_load(land))
    return figures


def _request(lease: Lease, token: str, subject: _Subject) -> bytes:
    head = (
        f"{subject.method} {subject.path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n"
        f"apikey: {lease.anon_key}\r\nauthorization: Bearer {token}\r\n"
    )
    if subject.body:
        head += f"content-type: application/json\r\ncontent-length: {len(subject.body)}\r\n"
    return head.encode() + b"\r\n" + subject.body


def _load(lease: Lease, request: bytes, connections: int, seconds: float) -> Load:
    """Load from a process of its own. Raises RuntimeError when anything but success was answered."""
    line = [
        options.python(),
        "-m",
        "toft.bench.load",
        str(lease.http_port),
        str(connections),
        str(seconds),
    ]
    done = subprocess.run(line, input=request, capture_output=True, check=True)
    load = msgspec.json.decode(done.stdout, type=Load)
    if load.errors:
        raise RuntimeError(f"{load.errors} requests failed")
    return load


def _sign_up(lease: Lease) -> str:
    body = json.dumps({"email": "bench@example.com", "password": "bench and bench"}).encode()
    request = urllib.request.Request(
        f"{lease.url}/auth/v1/signup",
        data=body,
        headers={"apikey": lease.anon_key, "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())["access_token"]


class _Pgbench:
    """The engine's own pgbench, over the postmaster's Unix socket."""

    def __init__(self, land: Ground, lease: Lease) -> None:
        self._engine = find_engines(land.home, None)[0]
        self._script = land.home / "bench.sql"
        self._environ = {
            "LD_LIBRARY_PATH": ":".join(map(str, self._engine.lib_dirs)),
            "PGHOST": f"{land.daemon.settings.run}/b/{lease.backend_id}",
            "PGUSER": "postgres",
            "PGDATABASE": "postgres",
            "PGPASSWORD": lease.password,
        }

    def run(self, subject: _Subject, seconds: float) -> float:
        """Transactions a second of the settings and the statement in one pipeline."""
        claims = '{"sub":"00000000-0000-0000-0000-000000000001","role":"authenticated"}'
        path = subject.path.removeprefix("/rest/v1").partition("?")[0]
        settings = (
            """select set_config('search_path', '"public", "public", "extensions"', true), """
            f"set_config('role', 'authenticated', true), set_config('request.jwt.claims', '{claims}', true), "
            f"set_config('request.method', '{subject.method}', true), "
            f"set_config('request.path', '{path}', true)"
        )
        self._script.write_text(f"\\startpipeline\n{settings};\n{subject.sql};\n\\endpipeline\n")
        line = [str(self._engine.bin_dir / "pgbench"), "-n", "-M", "prepared", "-c", "4", "-j", "1"]
        line += ["-T", str(max(1, round(seconds))), "-f", str(self._script)]
        done = subprocess.run(line, env=self._environ, capture_output=True, check=True, text=True)
        for text in done.stdout.splitlines():
            if text.startswith("tps = "):
                return float(text.split()[2])
        raise RuntimeError(f"pgbench said no rate: {done.stdout[-500:]}")


def _schema_load(land: Ground) -> Figure:
    """The first request after DDL where there are 2000 tables and as many foreign keys."""
    tables = "".join(
        f"create table t{n} (id int primary key, up int {f'references t{n - 1}' if n else ''}, body text);\n"
        for n in range(2000)
    )
    lease = land.lease(Bundle({"supabase/migrations/1_wide.sql": tables.encode()}, {}))
    sql = SqlSession("127.0.0.1", lease.db_port, "postgres", lease.password)
    http = HttpSession(lease.http_port)
    samples: list[float] = []
    for number in range(5):
        sql.query(f"create table extra_{number} (id int primary key)")
        began = time.perf_counter()
        status, body = http.get(f"/rest/v1/extra_{number}?select=id", lease.anon_key)
        samples.append((time.perf_counter() - began) * 1e3)
        if status != 200:
            raise RuntimeError(f"the new table answered {status}: {body[:200]!r}")
    return single("api.schema2000.load", "ms", sorted(samples)[2], n=5)
