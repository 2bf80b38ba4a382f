"""The version of the schema: it changes with each committed DDL command, and no tenant can keep it still."""

from __future__ import annotations

import pytest

from tests.kit.fix_supabase import SupabaseCluster, refused, value
from toft.pg.connection import Connection
from toft.pg.sqlstate import PostgresError

DENIED = "42501"


async def version(api: Connection) -> str:
    found = await value(api, "select toft.schema_version()")
    assert found is not None
    return found


CHANGES = [
    "create table public.n (id int)",
    "alter table public.t add column x int",
    "alter table public.t rename column id to key",
    "alter table public.t rename to u",
    "drop table public.t",
    "create view public.v as select 1",
    "create function public.f() returns int language sql return 1",
    "drop function public.g()",
    "comment on table public.t is 'x'",
    "grant select on public.t to anon",
    "create schema app",
    "create type public.e as enum ('a')",
    "alter table public.t add unique (id)",
    "create materialized view public.m as select 1",
    "select 1 as x into public.s",
    "create extension citext with schema extensions",
    "drop extension pgcrypto cascade",
    "drop schema public cascade",
    "drop owned by postgres",
    "drop owned by anon",
    "do $$ begin execute 'create table public.n (id int)'; end $$",
    "alter default privileges in schema public grant all on tables to anon",
    # shared objects, which event triggers do not see
    "alter role postgres set statement_timeout = '9s'",
    "alter database postgres set timezone = 'Europe/Rome'",
    "alter role postgres in database postgres set timezone = 'Europe/Rome'",
    "alter role postgres reset search_path",
]
PREPARE = """
reset search_path; drop schema if exists public cascade; create schema public; drop schema if exists app;
create table public.t (id int primary key); create function public.g() returns int language sql return 1;
grant select on public.t to anon;
drop extension if exists citext; create extension if not exists pgcrypto with schema extensions;
"""


@pytest.mark.parametrize("mode", ["origin", "replica"])
async def test_ddl_changes_the_version(supabase: SupabaseCluster, mode: str) -> None:
    """At the commit and not before; a rollback leaves it; session_replication_role does not matter."""
    api = await supabase.connect("authenticator")
    for sql in CHANGES:
        tenant = await supabase.connect()
        await tenant.script("create schema if not exists extensions")
        await tenant.script(PREPARE)
        await tenant.script(f"set session_replication_role = {mode}")
        before = await version(api)
        await tenant.script(f"begin; {sql}")
        assert await version(api) == before, sql
        await tenant.script("rollback")
        assert await version(api) == before, sql
        await tenant.script(sql)
        assert await version(api) != before, sql
        tenant.close()


async def test_new_roles_and_memberships_change_the_version(supabase: SupabaseCluster) -> None:
    """Roles are shared objects."""
    admin = await supabase.connect("supabase_admin")
    api = await supabase.connect("authenticator")
    seen = {await version(api)}
    for sql in (
        "create role r",
        "grant r to authenticator",
        "alter role r rename to s",
        "revoke s from authenticator",
    ):
        await admin.script(sql)
        seen.add(await version(api))
    assert len(seen) == 5
    await admin.script("drop role s")
    await admin.script("alter role anon password 'x'")
    assert await version(api) in seen


async def test_data_and_temporary_objects_leave_the_version(supabase: SupabaseCluster) -> None:
    """Requests that write rows, or use temporary tables, do not make everybody reload."""
    tenant = await supabase.connect()
    await tenant.script("create table public.t (id int primary key)")
    api = await supabase.connect("authenticator")
    before = await version(api)
    await tenant.script(
        "insert into public.t values (1); update public.t set id = 2; truncate public.t;"
        "create temp table x (id serial primary key); alter table x add y text; create index on x (y);"
        "create temp view z as select * from x; drop view z; drop table x; set search_path = public"
    )
    assert await version(api) == before


async def test_commits_out_of_order_are_all_seen(supabase: SupabaseCluster) -> None:
    """Two DDL transactions do not wait for each other, and each changes the version when it commits."""
    api = await supabase.connect("authenticator")
    one, two = await supabase.connect(), await supabase.connect()
    seen = {await version(api)}
    await one.script("begin; create table public.one (id int)")
    await two.script("begin; create table public.two (id int)")
    await two.script("commit")
    seen.add(await version(api))
    await one.script("commit")
    seen.add(await version(api))
    assert len(seen) == 3


async def test_a_wrong_version_stops_a_request(supabase: SupabaseCluster) -> None:
    """TF001, with the current version as detail."""
    api = await supabase.connect("authenticator")
    current = await version(api)
    await api.query("select toft.require_schema_version($1)", current)
    with pytest.raises(PostgresError) as caught:
        await api.query("select toft.require_schema_version('1.0')")
    assert (caught.value.sqlstate, caught.value.detail) == ("TF001", current)


async def test_a_snapshot_lets_through_until_something_is_committed(supabase: SupabaseCluster) -> None:
    """What a call returns opens the next one cheaply, and never after a change."""
    tenant = await supabase.connect()
    api = await supabase.connect("authenticator")
    ask = "select toft.require_schema_version($1, $2)"
    current = await version(api)
    [[seen]] = await api.query(ask, current, None)
    assert await api.query(ask, current, seen) == [[seen]]
    await tenant.script("begin; create table public.t (id int)")
    await api.query(ask, current, seen)
    await tenant.script("commit")
    with pytest.raises(PostgresError, match="the schema has changed"):
        await api.query(ask, current, seen)
    with pytest.raises(PostgresError, match="the schema has changed"):
        await api.query(ask, current, None)


async def test_a_session_in_a_transaction_sees_its_own_ddl(supabase: SupabaseCluster) -> None:
    """The snapshot's shortcut does not hide what the transaction itself has done."""
    api = await supabase.connect("authenticator")
    admin = await supabase.connect("supabase_admin")
    await admin.script("grant create on schema public to authenticator")
    current = await version(api)
    await api.script("begin")
    [[seen]] = await api.query("select toft.require_schema_version($1, null)", current)
    await api.script("create table public.own (id int)")
    assert await version(api) != current
    await api.script("rollback")
    assert seen is not None


async def test_folding_keeps_the_version(supabase: SupabaseCluster) -> None:
    """Many rows become one of their weight, also beside a publication of all tables."""
    tenant = await supabase.connect()
    for number in range(40):
        await tenant.script(f"create table public.t{number} (id int)")
    admin = await supabase.connect("supabase_admin")
    await admin.script("create publication everything for all tables")
    api = await supabase.connect("authenticator")
    before = await version(api)
    await api.script("select toft.fold_schema_changes()")
    assert await version(api) == before
    assert await value(admin, "select count(*) from toft.schema_change") == "1"
    await api.script("select toft.fold_schema_changes()")
    assert await version(api) == before


async def test_a_fold_beside_a_change_loses_nothing(supabase: SupabaseCluster) -> None:
    """The row of an open DDL transaction is not folded away."""
    tenant = await supabase.connect()
    api = await supabase.connect("authenticator")
    admin = await supabase.connect("supabase_admin")
    await tenant.script("begin; create table public.t (id int)")
    before = int(await value(admin, "select sum(weight) from toft.schema_change") or 0)
    await api.script("select toft.fold_schema_changes()")
    await tenant.script("commit")
    after = int(await value(admin, "select sum(weight) from toft.schema_change") or 0)
    assert after > before


async def test_clones_that_differ_have_different_versions(supabase: SupabaseCluster) -> None:
    """One command at two clones gives two versions: what is known of one is not the other's."""
    tenant = await supabase.connect()
    api = await supabase.connect("authenticator")
    seen = set[str]()
    for _ in range(2):
        await tenant.script("begin; create table public.t (id int)")
        [[there]] = await tenant.query("select sum(weight) from toft.schema_change")
        await tenant.script("rollback")
        seen.add(str(there))
    assert len(seen) == 2
    assert await version(api)


async def test_clones_of_a_template_agree(supabase: SupabaseCluster) -> None:
    """Passwords are not part of the version, so that a schema cache serves all clones of one template."""
    api = await supabase.connect("authenticator")
    admin = await supabase.connect("supabase_admin")
    before = await version(api)
    await admin.script("alter role postgres password 'another'; alter role authenticator password 'other'")
    assert await version(api) == before


async def test_a_fresh_template_has_one_row(supabase: SupabaseCluster) -> None:
    """Each row costs every request a little."""
    admin = await supabase.connect("supabase_admin")
    assert await value(admin, "select count(*) from toft.schema_change") == "1"


ATTACKS = [
    "drop event trigger pgrst_ddl_watch",
    "drop event trigger if exists pgrst_drop_watch cascade",
    "alter event trigger pgrst_ddl_watch disable",
    "alter event trigger pgrst_ddl_watch owner to postgres",
    "alter event trigger pgrst_ddl_watch rename to x",
    "alter event trigger toft_guard_ddl enable replica",
    "drop schema toft cascade",
    "alter schema toft rename to x",
    "create table toft.x (id int)",
    "create function toft.schema_version(text) returns text language sql return ''",
    "create or replace function toft.schema_version() returns text language sql return ''",
    "create or replace function toft.note_ddl() returns event_trigger language plpgsql as 'begin end'",
    "drop function toft.note_ddl() cascade",
    "alter function toft.note_ddl() set search_path = public",
    "alter function toft.require_schema_version(text, text) rename to x",
    "drop table toft.schema_change cascade",
    "alter table toft.schema_change rename to x",
    "alter table toft.schema_change enable row level security",
    "insert into toft.schema_change values (-1)",
    "update toft.schema_change set weight = 0",
    "delete from toft.schema_change",
    "truncate toft.schema_change",
    "lock table toft.schema_change in access exclusive mode",
    "lock table toft.schema_change in row exclusive mode",
    "lock table pg_catalog.pg_authid in access exclusive mode",
    "lock table pg_catalog.pg_db_role_setting in exclusive mode",
    "select * from toft.schema_change for update",
    "create trigger t before insert on toft.schema_change for each row execute function public.f()",
    "create rule r as on insert to toft.schema_change do instead nothing",
    "create policy p on toft.schema_change using (false)",
    "create index on toft.schema_change (weight)",
    "alter publication supabase_realtime add table toft.schema_change",
    "grant usage on schema toft to anon",
    "grant execute on function toft.fold_schema_changes() to postgres",
    "select toft.fold_schema_changes()",
    "select toft.note_ddl()",
    "create event trigger e on ddl_command_end execute function toft.note_ddl()",
    "create trigger t after insert on public.t for each row execute function toft.note_ddl()",
    "drop owned by supabase_admin cascade",
    "reassign owned by supabase_admin to postgres",
    "drop extension plpgsql cascade",
    "drop language plpgsql cascade",
    "set event_triggers = off",
    "alter database postgres set event_triggers = off",
    "alter role postgres set event_triggers = off",
    "update pg_catalog.pg_event_trigger set evtenabled = 'D'",
    "delete from pg_catalog.pg_event_trigger",
]


@pytest.mark.parametrize("mode", ["origin", "replica"])
async def test_no_tenant_breaks_or_forges_the_version(supabase: SupabaseCluster, mode: str) -> None:
    """Every attack by `postgres` is refused, and afterwards DDL still changes the version."""
    tenant = await supabase.connect()
    await tenant.script("create table public.t (id int); create function public.f() returns trigger"
                        " language plpgsql as 'begin return null; end'")  # fmt: skip
    api = await supabase.connect("authenticator")
    before = await version(api)
    await tenant.script(f"set session_replication_role = {mode}")
    went_through: list[str] = []
    for sql in ATTACKS:
        if await refused(tenant, f"begin; {sql}; commit") is None:
            went_through.append(sql)
        await tenant.script("rollback")
    # GRANT by somebody who may not grant is a warning and no error
    harmless = {
        "grant usage on schema toft to anon",
        "grant execute on function toft.fold_schema_changes() to postgres",
    }
    assert set(went_through) <= harmless
    if not went_through:
        assert await version(api) == before
    assert await refused(tenant, "select toft.fold_schema_changes()") == DENIED
    before = await version(api)
    await tenant.script("create table public.after (id int)")
    assert await version(api) != before
    held = await value(tenant, "select string_agg(distinct evtenabled::text, '') from pg_event_trigger")
    assert held == "A"


async def test_the_data_apis_callers_reach_nothing_of_it(supabase: SupabaseCluster) -> None:
    """anon, authenticated and service_role have no way into schema `toft`."""
    api = await supabase.connect("authenticator")
    for role in ("anon", "authenticated", "service_role"):
        await api.script(f"set role {role}")
        for sql in ("select * from toft.schema_change", "select toft.schema_version()"):
            assert await refused(api, sql) == DENIED
        await api.script("reset role")
