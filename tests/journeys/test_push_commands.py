"""`toft db push`, `toft migration …` and `toft run --watch-migrations`, as a user types them."""

from __future__ import annotations

import json
import re

import pytest

from tests.kit.leased import query
from tests.kit.real_cli import ASK_SQL, RealCli, ask, read_line


async def test_push_applies_what_is_pending(cli: RealCli) -> None:
    """A file that was added during the lease is applied with its history row; a second push does nothing."""
    cli.write({"1_a.sql": "create table a (id int);"})
    lease = cli.json("lease", "create")
    assert cli("db", "push").stdout == "up to date\n"
    made = cli("migration", "new", "Add a thing!").stdout.strip()
    assert re.fullmatch(r"supabase/migrations/\d{14}_add_a_thing\.sql", made)
    (cli.folder / made).write_text("create table thing (id int);\nselect 1;\n")
    cli.write({"supabase/seed.sql": "insert into a values (7);"})

    listed = cli.json("migration", "list")["migrations"]
    assert [(row["name"], row["local"], row["applied"]) for row in listed] == [
        ("a", True, True),
        ("add_a_thing", True, False),
    ]
    assert cli("db", "push", "--dry-run").stdout == f"pending {made}\n"
    assert await query(lease, "select to_regclass('thing') is null")
    assert cli("db", "push", "--include-seed").stdout == f"applied {made}\napplied supabase/seed.sql\n"
    assert await query(lease, "select id from a") == 7
    history = "select array_length(statements, 1) from supabase_migrations.schema_migrations where name = $1"
    assert await query(lease, history, "add_a_thing") == 2
    assert cli("migration", "up").stdout == "up to date\n"


async def test_a_push_that_fails(cli: RealCli) -> None:
    """File, line, SQLSTATE and hint are told; what was applied before stays, nothing of the file does."""
    lease = cli.json("lease", "create")
    cli.write(
        {"1_a.sql": "create table a ();", "2_b.sql": "create table b ();\nselect nope;\n", "3_c.sql": ""}
    )
    done = cli("db", "push")
    assert done.returncode == 125
    assert "supabase/migrations/2_b.sql:2: " in done.stderr
    assert "(SQLSTATE 42703" in done.stderr
    assert done.stdout == "applied supabase/migrations/1_a.sql\n"
    report = cli("db", "push", "--json")
    failed = json.loads(report.stdout)
    assert (report.returncode, failed["failure"]["code"]) == (1, "TOFT-PROJECT-MIGRATION")
    assert [(file["path"], file["status"]) for file in failed["files"]] == [
        ("supabase/migrations/2_b.sql", "failed")
    ]
    assert await query(lease, "select to_regclass('a') is not null and to_regclass('b') is null")


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("select pg_sleep(600);", "TOFT-PROJECT-TIMEOUT", "was not done after 1 seconds"),
        ("select pg_terminate_backend(pg_backend_pid());", "TOFT-PROJECT-MIGRATION", "57P01"),
        ("drop schema public cascade; create schema public;", None, ""),
        ("drop schema supabase_migrations cascade;", "TOFT-PROJECT-MIGRATION", "supabase_migrations"),
    ],
)
async def test_files_that_do_harm(cli: RealCli, text: str, code: str | None, words: str) -> None:
    """One that hangs, kills its session or drops its schema is told as such, and the lease goes on."""
    cli.write({"1_a.sql": "select 1;"})
    lease = cli.json("lease", "create")
    cli.write({"2_b.sql": text})
    report = json.loads(cli("db", "push", "--timeout", "1", "--json").stdout)
    failure = report["failure"]
    assert (failure and failure["code"]) == code
    assert words in str(failure)
    assert await query(lease, "select 1") == 1
    running = (
        "select count(*) from pg_stat_activity where query like 'select pg_sleep(600)%' and state = 'active'"
    )
    while await query(lease, running):
        pass
    (cli.folder / "supabase/migrations/2_b.sql").write_text("create table public.mended ();")
    if code is not None:
        assert cli("db", "push").returncode == 0


async def test_history_that_does_not_fit(cli: RealCli) -> None:
    """Older files need `--include-all`; versions without a file are named; repair corrects the history."""
    cli.write({"2_b.sql": "create table b ();"})
    cli.json("lease", "create")
    cli.write({"1_a.sql": "create table a ();"})
    assert cli.refusal("db", "push")["code"] == "TOFT-PROJECT-ORDER"
    assert cli("migration", "repair", "1", "--status", "applied").stdout == "1: applied\n"
    assert cli("db", "push").stdout == "up to date\n"
    assert cli("migration", "repair", "1", "--status", "reverted").returncode == 0
    assert cli("db", "push", "--include-all").stdout == "applied supabase/migrations/1_a.sql\n"
    (cli.folder / "supabase/migrations/1_a.sql").unlink()
    refused = cli.refusal("db", "push")
    assert (refused["code"], "1" in refused["title"]) == ("TOFT-PROJECT-HISTORY", True)
    assert cli.refusal("migration", "repair", "9", "--status", "applied")["code"] == "TOFT-USAGE"
    assert cli.refusal("migration", "repair", "2")["code"] == "TOFT-USAGE"


async def test_migrations_are_watched(cli: RealCli) -> None:
    """With --watch-migrations, a file that the command's user writes is applied while the command runs."""
    cli.write({"1_a.sql": "create table a ();"})
    with cli.started("run", "--watch-migrations", "--", *ASK_SQL) as process:
        assert read_line(process).startswith("ready")
        assert ask(process, "select count(*) from supabase_migrations.schema_migrations") == "1"
        cli.write({"2_b.sql": "create table b ();"})
        while ask(process, "select to_regclass('b') is not null") != "True":
            pass
        cli.write({"3_c.sql": "nonsense;"})
        assert process.stderr is not None
        while "3_c.sql" not in process.stderr.readline():
            pass
        cli.write({"3_c.sql": "create table c ();"})
        while ask(process, "select to_regclass('c') is not null") != "True":
            pass
        process.terminate()
        process.wait(60)
    assert not [line for line in cli.daemon.processes() if "--watch" in line]
