"""Projects as they lie on real disks, half-broken ones too, by `toft run` and `toft lease create`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.kit.fix_cli import TOFT
from tests.kit.fix_daemon import RunningDaemon
from tests.kit.real_cli import RealCli


async def query(lease: dict[str, Any], sql: str) -> Any:
    session = await asyncpg.connect(
        host=lease["host"], port=lease["db_port"], user="postgres", password=lease["password"], ssl=False
    )
    try:
        return await session.fetchval(sql)
    finally:
        await session.close()


def templates(daemon: RunningDaemon) -> set[str]:
    """What there is of projects' templates, half-made ones too."""
    return {name for name in os.listdir(daemon.home / "templates") if not name.startswith("base-")}


async def test_a_failing_migration_leaves_nothing(cli: RealCli, toftd: RunningDaemon) -> None:
    """A migration that fails ends the run before the command, says where and why, and leaves no template."""
    before = templates(toftd)
    cli.write(
        {"1_a.sql": "create table a (id int);", "2_b.sql": "\n\nselect 1;\n\ninsert into b values (1);"}
    )
    error = cli.refusal("run", "--", "echo", "the command has run")
    assert error["code"] == "TOFT-PROJECT-MIGRATION"
    assert error["title"] == (
        'supabase/migrations/2_b.sql:5: relation "b" does not exist (SQLSTATE 42P01, statement 1)'
    )
    assert await toftd.leases() == []
    assert templates(toftd) == before
    assert not list(toftd.run.glob("t*/"))
    assert not [line for line in toftd.processes() if "/templates/" in line]
    cli.write({"2_b.sql": "create table b (id int);"})
    assert cli("run", "--", "true").returncode == 0


async def test_a_failing_seed_leaves_nothing(cli: RealCli, toftd: RunningDaemon) -> None:
    """A seed that fails is told like a migration, and no backend comes of it."""
    cli.write({"1_a.sql": "create table a (id int primary key);"})
    cli.write({"supabase/seed.sql": "insert into a values (1);\ninsert into a values (1);"})
    error = cli.refusal("run", "--", "true")
    assert error["code"] == "TOFT-PROJECT-MIGRATION"
    assert error["title"].startswith("supabase/seed.sql:2: duplicate key value")
    assert await toftd.leases() == []
    assert cli("run", "--no-seed", "--", "true").returncode == 0


async def test_a_half_broken_config(cli: RealCli) -> None:
    """What can be read of config.toml counts, and the rest is said with its line."""
    cli.write(
        {
            "supabase/config.toml": (
                'project_id = "half"\n[api]\nmax_rows = 2\nschemas = ["public", "graphql_public"\n'
                "[db.seed]\nenabled = false\n[nonsense]\nx = 1\n[auth]\nsite_url = = 3\n"
            ),
            "1_a.sql": "create table a as select generate_series(1, 5) as id; grant select on a to anon;",
            "supabase/seed.sql": "select 1 / 0;",
        }
    )
    read = "import json, os, urllib.request as u; e = os.environ\n" + (
        "r = u.Request(e['SUPABASE_URL'] + '/rest/v1/a', headers={'apikey': e['SUPABASE_ANON_KEY']})\n"
        "print(len(json.load(u.urlopen(r))))"
    )
    done = cli("run", "--", sys.executable, "-c", read)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    assert any("supabase/config.toml:4" in note for note in notes), done.stderr
    assert any("supabase/config.toml:10" in note for note in notes), done.stderr


@pytest.mark.parametrize(
    ("raw", "place", "cause"),
    [
        ("select 'na\u00efve';".encode("latin-1"), "1", "UTF-8"),
        ("select 1;\n".encode("utf-16"), "1", "UTF-16"),
        (b"select 1;\n\\connect other\nselect 2;", "2", "\\connect"),
        (b"create table a (id int);\n\n\\i other.sql\n", "3", "\\i"),
        (b"create table a (id int);\ncopy a from stdin", "2", "COPY"),
        (b"select 1;\0", "1", "NUL"),
    ],
)
async def test_files_that_are_refused(cli: RealCli, raw: bytes, place: str, cause: str) -> None:
    """Bytes that are no UTF-8, and commands of psql that cannot be done, are refused with file and line."""
    cli.write({"1_a.sql": raw})
    error = cli.refusal("run", "--", "true")
    assert error["code"] == "TOFT-PROJECT-FILE"
    assert error["title"].startswith(f"supabase/migrations/1_a.sql:{place}: ")
    assert cause in error["title"]
    assert cli("run", "--no-migrations", "--", "true").returncode == 0


async def test_files_as_editors_write_them(cli: RealCli) -> None:
    """A byte order mark and CRLF work, and functions keep the line ends that they were written with."""
    cli.write({"1_a.sql": "\ufeffcreate table a (text text);\r\ninsert into a values ('x\r\ny');\r\n"})
    lease = cli.json("lease", "create")
    assert await query(lease, "select text from a") == "x\r\ny"


async def test_a_migration_of_fifty_megabytes(cli: RealCli) -> None:
    """50 MB in one file go all the way from the folder into the database."""
    row = "insert into a values (repeat('x', 10), '" + "y" * (1 << 20) + "');\n"
    cli.write({"1_a.sql": "create table a (short text, long text);\n" + row * 50})
    lease = cli.json("lease", "create")
    assert await query(lease, "select sum(length(long)) from a") == 50 << 20


async def test_no_project(cli: RealCli) -> None:
    """Where there is no supabase/ folder the backend is empty, and that is said on stderr."""
    done = cli(
        "run",
        "--",
        "sh",
        "-c",
        'psql "$DATABASE_URL" -Atc "select count(*) from pg_tables where schemaname = \'public\'"',
    )
    assert done.stderr == "note: no supabase/ folder here: the backend is empty\n"
    assert (done.returncode, done.stdout) == (0, "0\n") or shutil.which("psql") is None


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
async def test_closed_streams(cli: RealCli, tmp_path: Path, closed: str) -> None:
    """Called without stdin, stdout or stderr, as by some services, it works, and so does the command."""
    found = tmp_path / "found"
    code = f"import os; open({str(found)!r}, 'w').write(os.environ['PGPORT']); raise SystemExit(7)"
    words = shlex.join([*TOFT, "run", "--", sys.executable, "-c", code])
    done = subprocess.run(["sh", "-c", f"{words} {closed}"], cwd=cli.folder, env=cli.environment())
    assert done.returncode == 7
    assert found.read_text().isdecimal()
    words = shlex.join([*TOFT, "lease", "list"])
    assert subprocess.run(["sh", "-c", f"{words} {closed}"], env=cli.environment()).returncode == 0


async def test_a_folder_that_is_gone(cli: RealCli) -> None:
    """In a folder that was removed meanwhile the backend is empty, and the command runs as in any shell."""
    words = shlex.join([*TOFT, "run", "--", "echo", "here"])
    script = f"mkdir gone; cd gone; rmdir ../gone; {words}"
    done = subprocess.run(
        ["sh", "-c", script], cwd=cli.folder, env=cli.environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "here\n"), done.stderr
