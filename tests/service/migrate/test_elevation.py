"""What `postgres` may not do by itself and a migration still may; and what nobody gets by it."""

from __future__ import annotations

import pytest

from tests.kit.fix_supabase import SupabaseCluster, SupabaseTemplates, value
from tests.kit.projects import apply_to, project_of
from toft.errors.project import MigrationFailed
from toft.migrate.history import recorded_versions


async def role(cluster: SupabaseCluster, name: str) -> list[str | None] | None:
    session = await cluster.connect()
    rows = await session.query(
        "select rolcanlogin, rolinherit, rolcreatedb,"
        " rolsuper or rolcreaterole or rolreplication or rolbypassrls"
        " from pg_roles where rolname = $1",
        name,
    )
    return rows[0] if rows else None


async def members(cluster: SupabaseCluster, name: str) -> list[str]:
    session = await cluster.connect()
    rows = await session.query(
        "select distinct member::regrole::text from pg_auth_members where roleid = $1::regrole order by 1",
        name,
    )
    return [str(member) for [member] in rows]


async def failure(cluster: SupabaseCluster, *statements: str) -> MigrationFailed:
    """What comes of a file with these statements, after all that was applied before."""
    session = await cluster.connect()
    recorded = await recorded_versions(session)
    files = {f"{version}_a.sql": "" for version in recorded} | {"999_failing.sql": ";\n".join(statements)}
    with pytest.raises(MigrationFailed) as caught:
        await apply_to(cluster, project_of(files))
    return caught.value


async def test_roles_are_made_by_migrations(supabase: SupabaseCluster) -> None:
    """CREATE, ALTER, GRANT, COMMENT, RENAME and DROP ROLE work on every major, in the order of the file."""
    await apply_to(
        supabase,
        project_of(
            {
                "1_roles.sql": """
            create role reader nologin;
            create user "Odd name" with password 'p''w\\' in role reader connection limit 3;
            grant reader to authenticator, current_user;
            create table t (owner text);
            grant select on t to reader;
            alter role reader set statement_timeout = '7s';
            alter role reader with createdb noinherit;
            comment on role reader is 'reads';
            create role short_lived;
            alter role short_lived rename to shorter_lived;
            drop role if exists shorter_lived, never_there;
            alter role anon set statement_timeout = '10s';
            alter role authenticator set pgrst.db_schemas = 'public, api';
        """,
            }
        ),
    )
    assert await role(supabase, "reader") == ["f", "f", "t", "f"]
    assert await role(supabase, "Odd name") == ["t", "t", "f", "f"]
    assert await role(supabase, "shorter_lived") is None
    assert set(await members(supabase, "reader")) >= {"authenticator", "postgres", '"Odd name"'}
    session = await supabase.connect()
    assert await value(session, "select shobj_description('reader'::regrole, 'pg_authid')") == "reads"
    assert (
        await value(
            session,
            "select setconfig[1] from pg_db_role_setting where setrole = 'reader'::regrole",
        )
        == "statement_timeout=7s"
    )


async def test_roles_in_a_do_block(supabase: SupabaseCluster) -> None:
    """The usual `if not exists` block makes its role; lines of later errors are still those of the file."""
    block = """\
do $$
begin
  if not exists (select from pg_roles where rolname = 'worker') then
    create role worker
      nologin;
  else
    execute 'alter role worker nologin';
  end if;
  grant worker to postgres;
end
$$"""
    await apply_to(supabase, project_of({"1_a.sql": block, "2_again.sql": block}))
    assert await role(supabase, "worker") == ["f", "t", "f", "f"]
    assert "postgres" in await members(supabase, "worker")
    error = await failure(supabase, block.replace("end\n$$", "  perform 1/0;\nend\n$$"))
    assert (error.facts["line"], error.facts["column"]) == (10, 3)


async def test_a_role_goes_with_its_file(supabase: SupabaseCluster) -> None:
    """A role that was made for a file is rolled back with it, and no permit is left."""
    error = await failure(supabase, "create role gone", "select nope")
    assert (error.facts["line"], error.facts["statement"]) == (2, 1)
    assert await role(supabase, "gone") is None
    session = await supabase.connect()
    assert await value(session, "select to_regnamespace('toft_permit')::text") is None


async def test_roles_in_a_files_own_transaction(supabase: SupabaseCluster) -> None:
    """Roles made in a file with BEGIN and COMMIT follow these."""
    await failure(supabase, "begin", "create role kept", "commit", "begin", "create role lost", "select nope")
    assert await role(supabase, "kept") is not None
    assert await role(supabase, "lost") is None
    session = await supabase.connect()
    assert await value(session, "select to_regnamespace('toft_permit')::text") is None


async def test_a_duplicate_role_is_the_servers_error(supabase: SupabaseCluster) -> None:
    """42710 with the line of the statement, as if `postgres` had run it."""
    error = await failure(supabase, "select 1", "create role anon")
    assert (error.facts["sqlstate"], error.facts["line"], error.facts["column"]) == ("42710", 2, 1)
    assert "anon" in str(error.facts["text"])


@pytest.mark.parametrize(
    "statement",
    [
        "create role x superuser",
        "create role x replication",
        "create role x bypassrls",
        "create role x createrole",
        "create role pg_x",
        "create role x in role pg_execute_server_program",
        "create role x in role supabase_admin",
        "create role x; alter role x superuser",
        "create role x; alter role x bypassrls",
        "alter role anon login",
        "alter role anon password 'x'",
        "alter role authenticator password 'x'",
        "alter role supabase_admin password 'x'",
        "alter role supabase_auth_admin login",
        "alter role authenticator set session_preload_libraries = 'x'",
        "alter role anon set log_statement = 'none'",
        "drop role anon",
        "alter role anon rename to a",
        "grant pg_execute_server_program to postgres",
        "grant pg_read_server_files to postgres",
        "grant pg_write_all_data to postgres",
        "grant supabase_admin to postgres",
        "grant authenticator to postgres",
        "grant supabase_auth_admin to anon",
        "grant supabase_read_only_user to anon granted by supabase_admin",
        "alter group supabase_admin add user postgres",
        "do $$ begin create role x superuser; end $$",
        "do $$ begin execute 'grant pg_execute_server_program to postgres'; end $$",
        "do $$ begin alter role anon set log_statement = 'none'; end $$",
        "comment on role supabase_admin is 'x'",
        "revoke anon from authenticator",
    ],
)
async def test_what_is_not_given_before_16(supabase_templates: SupabaseTemplates, statement: str) -> None:
    """Nothing that reaches beyond the database, nor any of the platform's roles: 42501 or 42939, with our
    reason.
    """
    cluster = await supabase_templates.start(15)
    try:
        error = await failure(
            cluster, *statement.split("; ") if not statement.startswith("do") else [statement]
        )
        assert error.facts["sqlstate"] in {"42501", "42939", "0LP01"}
        assert await role(cluster, "x") is None
    finally:
        await supabase_templates.stop(cluster)


async def test_code_in_a_migration_finds_no_lever(supabase: SupabaseCluster) -> None:
    """A file that asks for a permit and holds hostile code gets the permitted statement and nothing else."""
    # To a session without standard_conforming_strings this says SUPERUSER; 18 refuses it by itself.
    tricky = (
        r"create role tricky password 'a\'' superuser; --';" if supabase.major < 16 else "create role tricky"
    )
    await apply_to(
        supabase,
        project_of(
            {
                "1_a.sql": """
            create function public.unnest(text[]) returns setof text language sql
              as $$ select 'alter role postgres superuser' $$;
            create function public.has_parameter_privilege(text, text, text) returns boolean
              language sql as 'select true';
            set search_path = public, pg_catalog;
            set standard_conforming_strings = off;
            do $$ begin
              begin insert into toft_permit.permitted values (99, '{alter role postgres superuser}', '{}');
              exception when others then raise notice '%', sqlerrm; end;
              begin update toft_permit.permitted set statements = '{alter role postgres superuser}';
              exception when others then raise notice '%', sqlerrm; end;
              begin execute 'create or replace function toft_permit.carry_out(integer)
                returns void language sql as ''select 1''';
              exception when others then raise notice '%', sqlerrm; end;
            end $$;
            create publication everything for all tables;
        """
                + tricky,
            }
        ),
    )
    session = await supabase.connect()
    assert await value(session, "select rolsuper from pg_roles where rolname = 'postgres'") == "f"
    assert await role(supabase, "tricky") == ["f", "t", "f", "f"]


async def test_publications_of_everything(supabase: SupabaseCluster) -> None:
    """FOR ALL TABLES and IN SCHEMA work as on the platform, and the publication is postgres's own
    afterwards.
    """
    applied = await apply_to(
        supabase,
        project_of(
            {
                "1_a.sql": "drop publication supabase_realtime;\n"
                "-- all\n"
                "create publication supabase_realtime for all tables with (publish = 'insert, update');\n"
                "create schema app;\n"
                "create publication app for tables in schema app, public;\n"
                "alter publication app drop tables in schema public;",
                "2_b.sql": "drop publication supabase_realtime;\ncreate publication supabase_realtime;",
            }
        ),
    )
    assert [(entry.file[-8:], entry.line, entry.what) for entry in applied.elevated] == [
        ("/1_a.sql", 3, "create publication for all tables"),
        ("/1_a.sql", 5, 'create publication for tables in schema "app", "public"'),
        ("/1_a.sql", 6, "publish tables in schema"),
    ]
    session = await supabase.connect()
    owners = await session.query("select pubname, pubowner::regrole::text from pg_publication order by 1")
    assert owners == [["app", "postgres"], ["supabase_realtime", "postgres"]]
    assert await value(session, "select rolsuper from pg_roles where rolname = 'postgres'") == "f"


async def test_custom_settings_of_the_database(supabase: SupabaseCluster) -> None:
    """`app.*` settings of old migrations work; those of the server do not."""
    applied = await apply_to(
        supabase,
        project_of(
            {
                "1_a.sql": "alter database postgres set \"app.settings.jwt_secret\" to 'x';\n"
                "ALTER DATABASE postgres SET app.my_url = 'http://x';\n"
                "alter role postgres set app.other to 1;",
            }
        ),
    )
    assert [(entry.line, entry.what) for entry in applied.elevated] == [
        (2, "set app.my_url"),
        (3, "set app.other"),
    ]
    session = await supabase.connect()
    assert await value(session, "select current_setting('app.my_url')") == "http://x"
    error = await failure(supabase, "alter database postgres set log_statement = 'all'")
    assert error.facts["sqlstate"] == "42501"
    error = await failure(supabase, "alter system set work_mem = '1MB'")
    assert error.facts["sqlstate"] == "42501"
