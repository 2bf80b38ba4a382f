"""What a migration file leaves behind, whole or broken: the transaction rules of the Supabase CLI."""

from __future__ import annotations

import pytest

from tests.kit.fix_supabase import SupabaseCluster
from tests.kit.projects import apply_to, project_of
from toft.errors.project import MigrationFailed


async def tables(cluster: SupabaseCluster) -> list[str]:
    session = await cluster.connect()
    rows = await session.query("select tablename from pg_tables where schemaname = 'public' order by 1")
    return [str(name) for [name] in rows]


async def versions(cluster: SupabaseCluster) -> list[str]:
    session = await cluster.connect()
    rows = await session.query("select version from supabase_migrations.schema_migrations order by version")
    return [str(version) for [version] in rows]


async def failure(cluster: SupabaseCluster, files: dict[str, str]) -> MigrationFailed:
    with pytest.raises(MigrationFailed) as caught:
        await apply_to(cluster, project_of(files))
    return caught.value


async def test_a_file_is_one_transaction_with_its_history_row(supabase: SupabaseCluster) -> None:
    """A failing statement takes the whole file with it; the files before it stay."""
    error = await failure(
        supabase,
        {
            "1_ok.sql": "create table a ();",
            "2_broken.sql": "create table b ();\ncreate table c (x nope);",
        },
    )
    assert error.facts["file"] == "supabase/migrations/2_broken.sql"
    assert (error.facts["line"], error.facts["column"], error.facts["statement"]) == (2, 19, 1)
    assert (error.facts["sqlstate"], error.facts["kept"]) == ("42704", 0)
    assert await tables(supabase) == ["a"]
    assert await versions(supabase) == ["1"]


async def test_history_is_as_upstream_tools_expect_it(supabase: SupabaseCluster) -> None:
    """The row holds version, name and the statements as they were cut, comments, quotes and backslashes
    included.
    """
    await apply_to(
        supabase,
        project_of(
            {
                '20240101000000_first "one".sql': "-- why\ncreate table a (t text default 'x\\y\"{},NULL');;"
                "\n\n select 'ü';\n",
                "20240102000000_.sql": "-- nothing but words\n",
                "20240103000000_empty.sql": "",
            }
        ),
    )
    session = await supabase.connect()
    rows = await session.query(
        "select version, name, array_length(statements, 1)::text, statements[1], statements[2]"
        " from supabase_migrations.schema_migrations order by version"
    )
    assert rows == [
        [
            "20240101000000",
            'first "one"',
            "2",
            "-- why\ncreate table a (t text default 'x\\y\"{},NULL')",
            "select 'ü'",
        ],
        ["20240102000000", "", "1", "-- nothing but words", None],
        ["20240103000000", "empty", None, None, None],
    ]
    columns = await session.query(
        "select attname, format_type(atttypid, null), attnotnull::text from pg_attribute"
        " where attrelid = 'supabase_migrations.schema_migrations'::regclass and attnum > 0 order by attnum"
    )
    assert columns == [
        ["version", "text", "true"],
        ["statements", "text[]", "false"],
        ["name", "text", "false"],
    ]


async def test_concurrently_commits_what_is_before_it(supabase: SupabaseCluster) -> None:
    """CREATE INDEX CONCURRENTLY flushes: what stands before it stays when the rest fails, without a
    history row.
    """
    error = await failure(
        supabase,
        {
            "1_split.sql": "create table a (x int);\ncreate index concurrently a_x on a (x);\n"
            "create table b ();\nvacuum a;\ncreate table c ();\nselect 1/0;",
        },
    )
    assert (error.facts["statement"], error.facts["line"], error.facts["kept"]) == (5, 6, 4)
    assert await tables(supabase) == ["a", "b"]
    assert await versions(supabase) == []


async def test_concurrently_in_an_ordinary_file(supabase: SupabaseCluster) -> None:
    """Index, REINDEX, VACUUM, CLUSTER and DROP INDEX stand among other statements."""
    await apply_to(
        supabase,
        project_of(
            {
                "1_a.sql": "create table a (x int primary key);\n"
                "create unique index concurrently i on a (x);\n"
                "reindex (verbose) index concurrently i;\nvacuum (analyze) a;\ncluster a using i;\n"
                "/* why */ -- gone\nDROP INDEX CONCURRENTLY i;\ninsert into a values (1);",
            }
        ),
    )
    assert await versions(supabase) == ["1"]


async def test_the_files_own_transactions(supabase: SupabaseCluster) -> None:
    """With BEGIN or COMMIT in it a file is sent statement by statement; what it committed stays after an
    error.
    """
    error = await failure(
        supabase,
        {
            "1_own.sql": "begin;\ncreate table a ();\ncommit;\ncreate table b ();\nbegin;\n"
            "create table c ();\nselect nope;\ncommit;",
        },
    )
    assert (error.facts["statement"], error.facts["line"], error.facts["kept"]) == (6, 7, 4)
    assert await tables(supabase) == ["a", "b"]
    assert await versions(supabase) == []


async def test_the_pg_delta_marker(supabase: SupabaseCluster) -> None:
    """The first line `-- pg-delta: transaction=false` makes every statement commit by itself."""
    error = await failure(
        supabase,
        {
            "1_marked.sql": "-- pg-delta: transaction=false\ncreate table a ();\ncreate table a ();",
        },
    )
    assert (error.facts["statement"], error.facts["kept"]) == (1, 1)
    assert await tables(supabase) == ["a"]


async def test_a_transaction_left_open_is_refused(supabase: SupabaseCluster) -> None:
    """The CLI reports success and keeps nothing; here the file fails at its BEGIN."""
    error = await failure(supabase, {"1_open.sql": "-- x\nbegin;\ncreate table a ();"})
    assert (error.facts["line"], error.facts["sqlstate"]) == (2, "25000")
    assert "commit" in error.hint


@pytest.mark.parametrize(("statement", "sqlstate"), [("lock table a", "25P01"), ("savepoint s", "25P01")])
async def test_a_pipeline_is_no_transaction_block(
    supabase: SupabaseCluster, statement: str, sqlstate: str
) -> None:
    """LOCK TABLE and SAVEPOINT fail as with the CLI, and the advice is to write BEGIN."""
    error = await failure(supabase, {"1_a.sql": "create table a ();", "2_b.sql": f"{statement};\n"})
    assert error.facts["sqlstate"] == sqlstate
    assert "`begin;`" in error.hint
    await apply_to(
        supabase, project_of({"1_a.sql": "create table a ();", "2_b.sql": f"begin;\n{statement};\ncommit;"})
    )
    assert await versions(supabase) == ["1", "2"]


async def test_enum_values_are_used_in_the_next_file(supabase: SupabaseCluster) -> None:
    """ALTER TYPE ... ADD VALUE runs in the transaction; its use there fails and in the next file works."""
    files = {"1_type.sql": "create type mood as enum ('calm');"}
    error = await failure(
        supabase, {**files, "2_same.sql": "alter type mood add value 'busy';\nselect 'busy'::mood;"}
    )
    assert error.facts["sqlstate"] == "55P04"
    assert "next file" in error.hint
    files |= {"2_add.sql": "alter type mood add value 'busy';"}
    files |= {"3_use.sql": "create table m (m mood default 'busy');"}
    await apply_to(supabase, project_of(files))
    assert await versions(supabase) == ["1", "2", "3"]


async def test_what_holds_to_the_end_of_a_file(supabase: SupabaseCluster) -> None:
    """An emptied search path is undone before the next migration, but not before the seeds; a role stays
    and fails.
    """
    files = {
        "1_dump.sql": "select pg_catalog.set_config('search_path', '', false);\n"
        "create table public.a (x int);"
    }
    await apply_to(supabase, project_of({**files, "2_next.sql": "create table b (a_x int);"}))
    assert await tables(supabase) == ["a", "b"]
    files |= {"2_next.sql": "", "3_dump.sql": "select set_config('search_path', '', false);"}
    error = await failure(supabase, {**files, "supabase/seed.sql": "-- rows\ninsert into a values (1);"})
    assert (error.facts["file"], error.facts["line"], error.facts["column"]) == ("supabase/seed.sql", 2, 13)
    assert "search_path" in error.hint
    error = await failure(
        supabase, {"1_dump.sql": "", "2_next.sql": "", "3_dump.sql": "", "4_role.sql": "set role anon;"}
    )
    assert (error.facts["sqlstate"], error.facts["statement"]) == ("42501", 1)
    assert "reset role" in error.hint


async def test_two_files_with_one_version(supabase: SupabaseCluster) -> None:
    """The second one fails on the history's key and is rolled back."""
    error = await failure(supabase, {"1_a.sql": "create table a ();", "1_b.sql": "create table b ();"})
    assert (error.facts["file"], error.facts["sqlstate"]) == ("supabase/migrations/1_b.sql", "23505")
    assert "same version" in error.hint
    assert await tables(supabase) == ["a"]


async def test_a_deferred_constraint_fails_the_file(supabase: SupabaseCluster) -> None:
    """It is checked at the commit, where no statement runs any more."""
    error = await failure(
        supabase,
        {
            "1_a.sql": "create table a (\n"
            "  x int primary key, y int references a deferrable initially deferred);\n"
            "insert into a values (1, 2);",
        },
    )
    assert (error.facts["sqlstate"], error.facts["statement"]) == ("23503", 3)
    assert await tables(supabase) == []


async def test_a_string_that_the_cli_ends_too_early(supabase: SupabaseCluster) -> None:
    """`E'it\\'s'` swallows the rest of the file into one statement, here as there; the advice says why."""
    error = await failure(supabase, {"1_a.sql": "select 1;\nselect E'it\\'s';\nselect 2;"})
    assert (error.facts["sqlstate"], error.facts["line"]) == ("42601", 2)
    assert "backslash" in error.hint
