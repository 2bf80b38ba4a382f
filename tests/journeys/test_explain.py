"""`toft explain`, as a user types it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.fix_cli import TOFT, plain_environment
from tests.kit.fix_daemon import RunningDaemon

SETUP = """
create table public.todos (id int primary key, owner uuid default auth.uid(), title text);
alter table public.todos enable row level security;
create policy own on public.todos to authenticated using (owner = auth.uid()) with check (owner = auth.uid());
grant all on public.todos to authenticated, service_role;
revoke all on public.todos from anon;
insert into public.todos select row_number() over (order by email), id, email from auth.users;
"""

type Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(shared_toftd: RunningDaemon, folder: Path) -> Run:
    environ = plain_environment({"TOFT_HOME": str(shared_toftd.home), "TOFT_RUN": str(shared_toftd.run)})

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*TOFT, *words], capture_output=True, text=True, timeout=60, cwd=folder, env=environ, check=False
        )

    return call


def test_the_matrix(run: Run) -> None:
    """Who sees which row, who is refused and why; a write is tried and leaves nothing."""
    assert run("lease", "create", "--label", "matrix").returncode == 0
    for name in ("ada@example.com", "eve@example.com"):
        assert run("user", "create", name, "--lease", "matrix").returncode == 0
    assert run("psql", "matrix", "--", "-qc", SETUP).returncode == 0
    lease = ("--lease", "matrix")
    users = ("--users", "ada@example.com,eve@example.com")
    done = run("explain", "/todos?select=id,title&order=id", *users, *lease)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["AS", "STATUS", "OUTCOME"]
    assert lines[1][:3] == ["anon", "401", "42501"]
    assert lines[2] == ["ada@example.com", "200", "1", "row"]
    assert lines[4] == ["service_role", "200", "2", "rows"]
    assert lines[6] == ["ROW", "anon", "ada@example.com", "eve@example.com", "service_role"]
    assert lines[7][-4:] == ["-", "x", "-", "x"]
    assert lines[8][-4:] == ["-", "-", "x", "x"]
    assert "grant select on public.todos to anon;" in done.stdout
    assert 'rows that pass "own": (owner = auth.uid())' in done.stdout

    body = ("--body", '{"id": 9, "owner": "00000000-0000-4000-8000-000000000000"}')
    told = json.loads(run("explain", "POST", "/todos", *body, *users, *lease, "--json").stdout)
    statuses = {trial["caller"]: trial["status"] for trial in told["trials"]}
    assert statuses == {"anon": 401, "ada@example.com": 403, "eve@example.com": 403, "service_role": 201}
    ada = told["trials"][1]
    assert ada["explanation"]["failed"] == "insert check"
    assert ada["error"]["hint"] == ada["explanation"]["hint"]
    assert run("psql", "matrix", "--", "-Atqc", "select count(*) from todos").stdout == "2\n"

    assert "there is no user" in run("explain", "/todos", "--users", "nobody@example.com", *lease).stderr
    assert run("explain", "FETCH", "/todos", *lease).returncode == 2
    run("lease", "release", "matrix")
