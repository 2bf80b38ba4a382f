"""What the platform lets `postgres` do and what it refuses, statement by statement.

Refusals differ from the platform's only where plain Postgres cannot do better (marked below); those are
the runner's to mend.
"""

from __future__ import annotations

import pytest

from tests.kit.fix_supabase import SupabaseCluster, refused
from toft.pg.sqlstate import PostgresError

OK = None
DENIED = "42501"

PREPARE = """
create function public.on_user() returns trigger language plpgsql as 'begin return new; end';
create table public.t (id int primary key);
"""

USER_MAPPING = (
    "create extension postgres_fdw; create server s foreign data wrapper postgres_fdw;"
    " create user mapping for postgres server s options (user 'x', password 'y')"
)

#: statement → SQLSTATE, or one per (before 16, from 16 on)
STATEMENTS: dict[str, str | tuple[str | None, str | None] | None] = {
    # the services' tables
    "create trigger x after insert on auth.users for each row execute function public.on_user()": OK,
    "create trigger x after insert on auth.users for each row execute function public.on_user();"
    " drop trigger x on auth.users": OK,
    "create policy p on storage.objects for select using (true)": OK,
    "create policy p on storage.buckets for all to anon using (true); alter policy p on storage.buckets to"
    " authenticated; drop policy p on storage.buckets": OK,
    "create policy p on realtime.messages for select using (realtime.topic() = 'x')": OK,
    "comment on table storage.objects is 'x'": OK,
    "grant select on auth.users to service_role": OK,
    "alter table storage.objects enable row level security": DENIED,
    "alter table storage.objects add column x int": DENIED,
    "alter table auth.users add column x int": DENIED,
    "alter table auth.users drop column phone": DENIED,
    "alter table auth.users disable trigger all": DENIED,
    "alter table auth.users set schema public": DENIED,
    "alter table auth.users owner to postgres": DENIED,
    "create index on auth.users (phone)": DENIED,
    "create rule r as on delete to auth.users do instead nothing": DENIED,
    "create statistics s on id, email from auth.users": DENIED,
    "create table auth.x (id int)": DENIED,
    "create table storage.x (id int)": DENIED,
    "create view auth.x as select 1": DENIED,
    "create function auth.x() returns int language sql return 1": DENIED,
    "create or replace function auth.uid() returns uuid language sql return null::uuid": DENIED,
    "alter function auth.uid() rename to x": DENIED,
    "alter function auth.uid() set search_path = public": DENIED,
    "alter type auth.aal_level add value 'aal4'": DENIED,
    "create table vault.x (id int)": DENIED,
    "create table realtime.x (id int)": DENIED,
    "drop table auth.users cascade": DENIED,
    "drop function auth.uid() cascade": DENIED,
    "drop type auth.aal_level cascade": DENIED,
    "drop index storage.name_prefix_search": DENIED,
    "drop schema auth cascade": DENIED,
    "drop schema storage cascade": DENIED,
    "drop owned by supabase_auth_admin": DENIED,
    "do $$ begin execute 'create table auth.x (id int)'; end $$": DENIED,
    "create schema app create table t (id uuid references auth.users (id))": OK,
    "create table extensions.x (id int)": OK,
    "insert into auth.users (id, email) values (gen_random_uuid(), 'a@example.org')": OK,
    "insert into storage.buckets (id, name) values ('b', 'b')": OK,
    "select * from auth.schema_migrations": OK,
    # roles
    "set role anon; reset role; set role authenticated; reset role; set role service_role": OK,
    "set role supabase_auth_admin": (OK, DENIED),
    "set role supabase_auth_admin; create table auth.x (id int)": (DENIED, DENIED),
    "set role supabase_admin": DENIED,
    "alter role anon set statement_timeout = '5s'": (DENIED, OK),  # before 16 without CREATEROLE
    "alter role authenticator set pgrst.db_schemas = 'public, app'": (DENIED, OK),
    "alter role postgres set search_path = public": OK,
    "alter role supabase_admin set search_path = public": DENIED,
    "alter role supabase_auth_admin set search_path = public": DENIED,
    "alter role postgres superuser": DENIED,
    "alter role postgres createrole": DENIED,
    "create role r; grant r to authenticator": (DENIED, OK),
    "create role r superuser": DENIED,
    "create role r bypassrls": (DENIED, OK),
    "grant pg_execute_server_program to postgres": DENIED,
    "grant pg_read_server_files to postgres": DENIED,
    "grant pg_write_server_files to anon": DENIED,
    "grant supabase_admin to postgres": DENIED,
    # publications
    "alter publication supabase_realtime add table public.t": OK,
    "drop publication supabase_realtime; create publication supabase_realtime": OK,
    "create publication p for table public.t": OK,
    "create publication p for all tables": DENIED,  # the runner's
    "create publication p for tables in schema public": DENIED,  # the runner's
    # what only a superuser may make
    "create event trigger e on ddl_command_end execute function toft.note_ddl()": DENIED,  # the platform: ok
    "create foreign data wrapper w": DENIED,  # the platform: ok
    "create function f() returns int language internal as 'int4in'": DENIED,
    # settings
    "set session_replication_role = replica": OK,
    "set log_min_messages = debug1; set track_io_timing = on; set log_lock_waits = on": OK,
    "alter database postgres set \"app.settings.jwt_secret\" = 'x'": OK,
    "alter database postgres set \"app.anything\" = 'x'": DENIED,
    "alter database postgres set search_path = public": OK,
    "set event_triggers = off": ("42704", DENIED),
    "alter default privileges in schema public grant all on tables to anon": OK,
    "alter default privileges for role supabase_admin grant all on tables to anon": DENIED,
    # its own
    "drop schema public cascade; create schema public": OK,
    "create schema app; create table app.t (id int)": OK,
    "select rolpassword from pg_authid": OK,
    "alter extension pgcrypto set schema public": DENIED,  # the platform: ok
    "drop extension pgcrypto cascade": OK,
    "create server s foreign data wrapper postgres_fdw": "42704",
    USER_MAPPING: OK,
    "create extension file_fdw": DENIED,
}


async def test_each_statement_meets_the_platforms_answer(supabase: SupabaseCluster) -> None:
    """As `postgres`, each statement in a transaction of its own."""
    session = await supabase.connect()
    await session.script(PREPARE)
    found: dict[str, str | None] = {}
    expected: dict[str, str | None] = {}
    for sql, answer in STATEMENTS.items():
        found[sql] = await refused(session, f"begin; {sql}")
        await session.script("rollback; reset role; reset all")
        expected[sql] = answer[supabase.major >= 16] if isinstance(answer, tuple) else answer
    if supabase.engine.source == "bindir":  # its libpq is found only by LD_LIBRARY_PATH
        expected.pop(USER_MAPPING)
        found.pop(USER_MAPPING)
    if supabase.major == 16:
        expected["set event_triggers = off"] = "42704"
    assert found == expected


async def test_a_refusal_reads_as_the_platforms(supabase: SupabaseCluster) -> None:
    """People search for these sentences."""
    session = await supabase.connect()
    said: list[str] = []
    for sql in (
        "alter table storage.objects enable row level security",
        "create index on auth.users (phone)",
        "create table auth.x (id int)",
        "drop table auth.users cascade",
    ):
        with pytest.raises(PostgresError) as caught:
            await session.script(sql)
        said.append(caught.value.message)
    assert said == [
        "must be owner of table objects",
        "must be owner of table users",
        "permission denied for schema auth",
        "must be owner of table users",
    ]


async def test_the_guard_is_not_met_by_a_function_of_the_tenants(supabase: SupabaseCluster) -> None:
    """A SECURITY DEFINER function that the Data API calls may not alter the services' tables either."""
    session = await supabase.connect()
    await session.script(
        "create function public.f() returns void language plpgsql security definer as"
        " $$ begin execute 'alter table auth.users add column x int'; end $$"
    )
    api = await supabase.connect("authenticator")
    await api.script("set role service_role")
    assert await refused(api, "select public.f()") == DENIED


async def test_the_services_do_as_they_like(supabase: SupabaseCluster) -> None:
    """The guard is for tenants: a service may migrate its own schema."""
    auth = await supabase.connect("supabase_auth_admin")
    assert (
        await refused(auth, "create table auth.x (id int); alter table auth.x add y int; drop table auth.x")
        is OK
    )
