"""Toft and the Supabase CLI end in the same place with the same files.

Each folder of tests/projects/tricky holds a small project and `expected.json`: what CLI 2.117.0 made of it on
Postgres 18. Toft is held to it. With SUPABASE_CLI set, the CLI itself is held to it as well, and
TOFT_RECORD_CLI=1 writes the files anew.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.kit import supabase_cli
from tests.kit.fix_supabase import SupabaseCluster, SupabaseTemplates
from tests.kit.projects import PROJECTS, apply_to, read_folder
from toft.errors.project import FileUnreadable, MigrationFailed
from toft.migrate.project import read_project

TRICKY = PROJECTS / "tricky"
MAJOR = 18

#: where Toft is stricter than the CLI, on purpose: what it says instead
STRICTER = {
    "latin1": "byte 0xe9 is not UTF-8",
    "nul_byte": "there is a NUL byte",
    "transaction_left_open": "the file begins a transaction here and does not end it",
}
#: what only psql understands, and Toft too; that the CLI refuses it is said
WIDER = ("psql_restrict", "copy_from_stdin")

REALISTIC = sorted(folder.name for folder in PROJECTS.iterdir() if folder.is_dir() and folder != TRICKY)


def cases() -> list[str]:
    return sorted(folder.name for folder in TRICKY.iterdir() if folder.is_dir())


async def state(cluster: SupabaseCluster) -> dict[str, Any]:
    """What can be seen afterwards: history, seeds, tables with their number of rows, roles, databases."""
    session = await cluster.connect()
    tables = await session.query("select tablename from pg_tables where schemaname = 'public' order by 1")
    counts = {
        str(table): (await session.query(f'select count(*) from public."{table}"'))[0][0]
        for [table] in tables
    }
    seen: dict[str, Any] = {"tables": counts}
    for name, table, columns in (
        ("history", "schema_migrations", "version, name, array_to_json(statements)"),
        ("seeds", "seed_files", "path, hash"),
    ):
        exists = await session.query(f"select to_regclass('supabase_migrations.{table}') is not null")
        rows = (
            await session.query(f"select {columns} from supabase_migrations.{table} order by 1")
            if exists == [["t"]]
            else []
        )
        seen[name] = [[*row[:2], *(json.loads(str(value)) for value in row[2:])] for row in rows]
    seen["roles"] = await names(
        cluster, "select rolname from pg_roles where rolname in ('reader','writer','fine')"
    )
    seen["databases"] = await names(cluster, "select datname from pg_database where datname = 'other'")
    return seen


async def names(cluster: SupabaseCluster, sql: str) -> list[str]:
    session = await cluster.connect()
    return sorted(str(name) for [name] in await session.query(sql))


@pytest.mark.parametrize("case", cases())
async def test_toft_does_what_the_cli_does(supabase_templates: SupabaseTemplates, case: str) -> None:
    """Success or the same SQLSTATE at the same statement, and the same traces in the database."""
    expected = json.loads((TRICKY / case / "expected.json").read_text())
    cluster = await supabase_templates.start(MAJOR)
    try:
        if case in STRICTER:
            with pytest.raises((FileUnreadable, MigrationFailed), match=re.escape(STRICTER[case])):
                await apply_to(cluster, read_project(read_folder(TRICKY / case)))
            return
        if case in WIDER:
            project = read_project(read_folder(TRICKY / case))
            await apply_to(cluster, project)
            assert expected["failure"]
            assert "the Supabase CLI refuses the file" in project.notices[-1].text
            return
        failure = None
        try:
            await apply_to(cluster, read_project(read_folder(TRICKY / case)))
        except MigrationFailed as error:
            failure = {"sqlstate": error.facts["sqlstate"], "statement": error.facts["statement"]}
            if str(error.facts["file"]).startswith("supabase/seed"):
                failure["statement"] = None  # the CLI does not tell
        assert {"failure": failure, **await state(cluster)} == expected
    finally:
        await supabase_templates.stop(cluster)


@pytest.mark.skipif(not supabase_cli.EXECUTABLE, reason="SUPABASE_CLI names no Supabase CLI")
@pytest.mark.parametrize("name", REALISTIC)
async def test_realistic_projects(supabase_templates: SupabaseTemplates, name: str, tmp_path: Path) -> None:
    """The CLI applies them as well, and leaves the same history and the same tables."""
    ours, theirs = await supabase_templates.start(MAJOR), await supabase_templates.start(MAJOR)
    try:
        await apply_to(ours, read_project(read_folder(PROJECTS / name)))
        status, output = await supabase_cli.push(theirs, PROJECTS / name, tmp_path)
        assert status == 0, output
        assert await state(ours) == await state(theirs)
    finally:
        await supabase_templates.stop(ours)
        await supabase_templates.stop(theirs)


@pytest.mark.skipif(not supabase_cli.EXECUTABLE, reason="SUPABASE_CLI names no Supabase CLI")
@pytest.mark.parametrize("case", cases())
async def test_what_the_cli_does(supabase_templates: SupabaseTemplates, case: str, tmp_path: Path) -> None:
    """The record is what the CLI at hand does."""
    cluster = await supabase_templates.start(MAJOR)
    try:
        status, output = await supabase_cli.push(cluster, TRICKY / case, tmp_path)
        failure = None
        if status != 0:
            sqlstate = re.search(r"\(SQLSTATE (\w{5})\)", output)
            statement = re.search(r"At statement: (\d+)", output)
            failure = {
                "sqlstate": sqlstate[1] if sqlstate else output[-400:],
                "statement": int(statement[1]) if statement else None,
            }
        seen = {"failure": failure, **await state(cluster)}
        record = TRICKY / case / "expected.json"
        if os.environ.get("TOFT_RECORD_CLI"):
            record.write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n")
        assert seen == json.loads(record.read_text())
    finally:
        await supabase_templates.stop(cluster)
