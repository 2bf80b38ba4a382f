"""Files that were written for psql: dumps, with their commands and the rows of their COPYs."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.kit.fix_supabase import PASSWORD, SupabaseCluster
from tests.kit.projects import apply_to, project_of
from toft.errors.project import MigrationFailed

ROWS = """\
create table person (id int primary key, name text, note text);
copy person (id, name, note) from stdin;
1\tit's; $$ -- /* \\\\ \tA\\nB
2\tÄ\t\\N
\\.
insert into person values (3, 'after', null);
copy person from stdin with (format csv, header);
id,name,note
4,"a, b",
\\.
"""


async def _names(cluster: SupabaseCluster) -> list[str | None]:
    session = await cluster.connect()
    return [row[0] for row in await session.query("select name from person order by id")]


@pytest.mark.parametrize("wrapper", ["{}", "begin;\n{}commit;\n", "-- pg-delta: transaction=false\n{}"])
async def test_copy_in_each_way_of_sending(supabase: SupabaseCluster, wrapper: str) -> None:
    """In one transaction, in one of its own, and statement by statement, rows arrive where they stand."""
    await apply_to(supabase, project_of({"1_a.sql": wrapper.format(ROWS)}))
    assert await _names(supabase) == ["it's; $$ -- /* \\ ", "Ä", "after", "a, b"]


async def test_copy_in_a_seed(supabase: SupabaseCluster) -> None:
    """Seeds may be dumps of data."""
    files = {
        "1_a.sql": "create table person (id int, name text)",
        "supabase/seed.sql": "copy person from stdin;\n1\tx\n\\.\n",
    }
    await apply_to(supabase, project_of(files))
    assert await _names(supabase) == ["x"]


async def test_a_row_that_does_not_fit(supabase: SupabaseCluster) -> None:
    """It is told at its COPY, with the server's word on the row; nothing of the file stays."""
    text = "create table person (id int, name text);\n\ncopy person from stdin;\n1\ta\nx\tb\n\\.\nselect 1;\n"
    with pytest.raises(MigrationFailed) as caught:
        await apply_to(supabase, project_of({"1_a.sql": text}))
    facts = caught.value.facts
    assert (facts["line"], facts["sqlstate"], facts["statement"]) == (3, "22P02", 1)
    assert "line 2, column id" in str(facts["where"])
    session = await supabase.connect()
    assert await session.query("select to_regclass('person') is null") == [["t"]]


async def test_an_unknown_table(supabase: SupabaseCluster) -> None:
    """A COPY that fails before it reads takes nothing else for its rows."""
    text = "copy nowhere from stdin;\n1\n\\.\ncreate table person (id int);\n"
    with pytest.raises(MigrationFailed) as caught:
        await apply_to(supabase, project_of({"1_a.sql": text}))
    assert (caught.value.facts["sqlstate"], caught.value.facts["line"]) == ("42P01", 1)


async def test_a_real_dump(supabase: SupabaseCluster, tmp_path: Path) -> None:
    """What pg_dump writes, `\\restrict` and COPY included, is applied as a migration."""
    session = await supabase.connect()
    await session.script("create table person (id serial primary key, name text not null)")
    await session.script("insert into person (name) select 'person ' || i from generate_series(1, 5000) as i")
    dump = await _dump(supabase)
    assert "COPY public.person" in dump
    await session.script("drop table person")
    await apply_to(supabase, project_of({"1_dump.sql": dump}))
    assert len(await _names(supabase)) == 5000
    assert await session.query("select nextval('person_id_seq')") == [["5001"]]


async def _dump(cluster: SupabaseCluster) -> str:
    program = cluster.engine.bin_dir / "pg_dump"
    if not program.exists() and shutil.which("pg_dump") is None:
        pytest.skip("this engine has no pg_dump")
    process = await asyncio.create_subprocess_exec(
        str(program if program.exists() else shutil.which("pg_dump")),
        *("-h", str(Path(cluster.socket_path).parent), "-U", "postgres", "-t", "person", "postgres"),
        env={**cluster.engine.environment(), "PGPASSWORD": PASSWORD},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode()
