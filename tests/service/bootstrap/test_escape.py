"""A tenant with SQL superuser wishes: ways out of the database, into the host or into the superuser."""

from __future__ import annotations

import pytest

from tests.kit.fix_supabase import PASSWORD, SupabaseCluster, refused, value
from toft.pg.connection import Connection
from toft.pg.sqlstate import PostgresError

DENIED = "42501"
NOT_SUPPORTED = "0A000"


ATTACKS = [
    "copy (select 1) to program 'id'",
    "create temp table t (x text); copy t from program 'id'",
    "create temp table t (x text); copy t from '/etc/passwd'",
    "copy (select 1) to '/tmp/toft-was-here'",
    "select pg_read_file('/etc/passwd')",
    "select pg_read_binary_file('postgresql.conf')",
    "select pg_ls_dir('.')",
    "select pg_stat_file('postgresql.conf')",
    "select lo_import('/etc/passwd')",
    "select lo_export(lo_create(0), '/tmp/toft-was-here')",
    "load '/tmp/x.so'",
    "create function f() returns int language c as '/tmp/x.so', 'f'",
    "alter system set archive_command = 'id'",
    "alter role postgres set session_preload_libraries = 'x'",
    "set session authorization supabase_admin",
    "create extension plpython3u",
    "create extension file_fdw",
    "select pg_reload_conf()",
    "select pg_rotate_logfile()",
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'supabase_admin'",
    "grant pg_execute_server_program to postgres",
    "create role evil in role pg_execute_server_program",
    "create role evil superuser",
    "alter role supabase_admin password 'x'",
    "alter role supabase_auth_admin password 'x'",
    "alter role supabase_storage_admin password 'x'",
    "grant supabase_auth_admin to anon",
    "update pg_authid set rolsuper = true where rolname = 'postgres'",
    "create tablespace t location '/tmp'",
    "drop role supabase_admin",
    "reassign owned by supabase_admin to postgres",
    "drop owned by supabase_admin",
    "drop extension plpgsql cascade",
    "alter function toft.guard_ddl() owner to postgres",
]


async def test_the_server_and_its_files_are_out_of_reach(supabase: SupabaseCluster) -> None:
    """Programs, files, libraries, settings of the server and stronger roles are refused."""
    session = await supabase.connect()
    await supabase.connect("supabase_admin")
    answers = {sql: await refused(session, sql) for sql in ATTACKS}
    assert [sql for sql, answer in answers.items() if answer is None] == []
    # no privilege, no such member, needed by others, not in this build, no such file
    assert set(answers.values()) <= {DENIED, "0LP01", "2BP01", NOT_SUPPORTED, "58P01"}


async def test_no_library_of_choice_is_loaded_at_login(supabase: SupabaseCluster) -> None:
    """local_preload_libraries takes plugins of the server's own folder only."""
    session = await supabase.connect()
    await refused(session, "alter role postgres set local_preload_libraries = '/etc/passwd'")
    with pytest.raises(PostgresError, match="access to library"):
        await supabase.connect()


@pytest.mark.parametrize("schema", ["extensions", "public"])
async def test_dblink_needs_the_other_roles_password(supabase: SupabaseCluster, schema: str) -> None:
    """The server's own socket asks for a password, whoever calls."""
    if supabase.engine.source == "bindir":
        pytest.skip("its libpq is found only by LD_LIBRARY_PATH")
    session = await supabase.connect()
    await session.script(f"create extension dblink with schema {schema}")
    place = f"host={supabase.spec.socket_dir} port=5432 dbname=postgres"
    for user in ("supabase_admin", "postgres", "authenticator"):
        assert await refused(session, f"select dblink_connect('{place} user={user}')") in {"2F003", "08001"}
        wrong = f"select dblink_connect('{place} user={user} password=wrong')"
        assert await refused(session, wrong) == "08001"
    assert await refused(session, f"select dblink_connect_u('{place} user=supabase_admin')") == DENIED
    own = f"select dblink_connect('{place} user=postgres password={PASSWORD}')"
    assert await refused(session, own) is None


async def test_a_subscription_reaches_nobody(supabase: SupabaseCluster) -> None:
    """No other role's database is copied through the server's own socket."""
    session = await supabase.connect()
    place = f"host={supabase.spec.socket_dir} port=5432 dbname=postgres user=supabase_admin password=wrong"
    answer = await refused(session, f"create subscription s connection '{place}' publication p")
    assert answer in {DENIED, "08006"}


async def _superuser_rights(session: Connection) -> bool:
    return await value(session, "select rolsuper from pg_roles where rolname = 'postgres'") == "t"


async def test_temporary_relations_do_not_catch_our_functions(supabase: SupabaseCluster) -> None:
    """A pooled session may hold a temporary relation with a catalogue's name; what runs as the superuser
    before the next request does not look at it."""
    session = await supabase.connect()
    await session.script(
        """create function public.evil() returns oid language plpgsql volatile as $$
           begin
             execute 'alter role postgres superuser';
             return 1;
           exception when others then
             return 1;
           end $$;
           create function public.plant() returns void language plpgsql as $$
           begin
             execute 'create temp view pg_authid as select ''x''::name as rolname, public.evil() as oid';
             execute 'create temp view pg_auth_members as select public.evil() roleid, 1::oid as member';
             execute 'create temp view schema_change as select public.evil()::bigint as weight';
             execute 'create domain pg_temp.text as pg_catalog.text check (public.evil() is null)';
           end $$"""
    )
    api = await supabase.connect("authenticator")
    version = await value(api, "select toft.schema_version()")
    await api.script("set role anon; select public.plant(); reset role")
    await api.script("set search_path = pg_temp, public")
    assert await value(api, "select toft.schema_version()") == version
    await api.query("select toft.require_schema_version($1)", version)
    await api.script("select toft.fold_schema_changes()")
    await api.script("create temp table made (id int); drop table made")
    assert not await _superuser_rights(session)


async def test_operators_of_the_tenants_are_not_used_by_our_functions(supabase: SupabaseCluster) -> None:
    """A search_path with the tenant's schema first changes nothing in what runs as the superuser."""
    session = await supabase.connect()
    await session.script(
        """create schema evil;
           create function evil.either(text, text) returns boolean language plpgsql as $$
           begin
             execute 'alter role postgres superuser';
             return true;
           exception when others then
             return true;
           end $$;
           create operator evil.= (leftarg = text, rightarg = text, function = evil.either);
           create function evil.sum_(numeric, text) returns text language plpgsql as $$
           begin
             execute 'alter role postgres superuser';
             return '';
           exception when others then
             return '';
           end $$;
           create operator evil.|| (leftarg = numeric, rightarg = text, function = evil.sum_);
           grant usage on schema evil to public;
           alter database postgres set search_path = evil, pg_catalog"""
    )
    api = await supabase.connect("authenticator")
    version = await value(api, "select toft.schema_version()")
    await api.query("select toft.require_schema_version($1, $1)", version)
    fresh = await supabase.connect()
    await fresh.script("create table public.t (id int)")
    assert not await _superuser_rights(session)


async def test_a_stand_in_in_a_database_of_the_tenants_gives_no_superuser(supabase: SupabaseCluster) -> None:
    """In a database that the tenant made, the schema of an extension is the tenant's: renaming it and putting
    a table with a trigger in its place does not catch functions that write as the superuser."""
    session = await supabase.connect()
    await session.script("create database mine")
    mine = await supabase.connect(database="mine")
    await mine.script(
        """create extension supabase_vault;
           alter schema vault rename to gone;
           create schema vault;
           create table vault.secrets (
             id uuid, name text, description text, secret text, key_id uuid, nonce bytea,
             created_at timestamptz, updated_at timestamptz);
           create function evil() returns trigger language plpgsql as $$
             begin execute 'alter role postgres superuser'; return new; end $$;
           create trigger evil before insert on vault.secrets for each row execute function evil();
           grant all on vault.secrets to public"""
    )
    assert await refused(mine, "select gone.create_secret('x')") is None
    assert await value(mine, "select count(*) from gone.secrets") == "1"
    assert not await _superuser_rights(session)
    assert await refused(mine, "create trigger t before insert on gone.secrets for each row"
                               " execute function evil()") == DENIED  # fmt: skip


TRAP = """
create function trap.{name}({arguments}) returns {result} language plpgsql as $$
begin
  execute 'alter role postgres superuser';
  return null;
exception when others then
  return null;
end $$;
"""
TRAPS = (
    ("now", "", "timestamptz"),
    ("gen_random_uuid", "", "uuid"),
    ("to_regrole", "varchar", "regrole"),
    ("format", "text, name", "text"),
)


async def test_extension_scripts_do_not_use_the_tenants_names(supabase: SupabaseCluster) -> None:
    """Scripts run as the superuser with the target schema in reach; the tenant's functions are not called."""
    session = await supabase.connect()
    names = await session.query(
        "select name from pg_available_extensions where comment like 'Stand-in by Toft%'"
    )
    await session.script('drop extension supabase_vault; drop extension "uuid-ossp"; create schema trap')
    for name, arguments, result in TRAPS:
        await session.script(TRAP.format(name=name, arguments=arguments, result=result))
    for [name] in names:
        await refused(session, f'create extension if not exists "{name}" with schema trap cascade')
    assert not await _superuser_rights(session)
