"""The services' schemas as users' SQL meets them."""

from __future__ import annotations

import asyncio

from tests.kit.fix_supabase import SupabaseCluster, refused, value

PROFILES = """
create table public.profiles (id uuid primary key references auth.users (id) on delete cascade, email text);
alter table public.profiles enable row level security;
create function public.handle_new_user() returns trigger language plpgsql {security} as $$
begin insert into {profiles} (id, email) values (new.id, new.email); return new; end $$;
create trigger on_auth_user_created after insert on auth.users
  for each row execute function public.handle_new_user();
"""
SIGN_UP = (
    "insert into auth.users (id, email) values ('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'a@example.org')"
)


async def test_a_sign_up_with_a_security_definer_trigger(supabase: SupabaseCluster) -> None:
    """The usual trigger on auth.users works."""
    session = await supabase.connect()
    await session.script(
        PROFILES.format(security="security definer set search_path = ''", profiles="public.profiles")
    )
    service = await supabase.connect("supabase_auth_admin")
    await service.script(SIGN_UP)
    assert await value(session, "select email from public.profiles") == "a@example.org"


async def test_a_sign_up_with_a_plain_trigger_fails(supabase: SupabaseCluster) -> None:
    """The classic "Database error saving new user": no SECURITY DEFINER, or no schema in the table's name."""
    session = await supabase.connect()
    await session.script(PROFILES.format(security="", profiles="public.profiles"))
    service = await supabase.connect("supabase_auth_admin")
    assert await refused(service, SIGN_UP) == "42501"
    await session.script(
        "drop trigger on_auth_user_created on auth.users; drop table public.profiles cascade;"
        "drop function public.handle_new_user"
    )
    await session.script(PROFILES.format(security="", profiles="profiles"))
    assert await refused(service, SIGN_UP) == "42P01"


async def test_who_asks(supabase: SupabaseCluster) -> None:
    """auth.uid() and auth.role() with claims set, unset and empty."""
    api = await supabase.connect("authenticator")
    someone = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    ask = "select auth.uid()::text, auth.role(), auth.email(), auth.jwt()::text is null"
    await api.script("set role anon")
    assert await api.query(ask) == [[None, None, None, "t"]]
    await api.script("set request.jwt.claims = ''")
    assert await api.query(ask) == [[None, None, None, "t"]]
    await api.script(f'set request.jwt.claims = \'{{"sub": "{someone}", "role": "authenticated"}}\'')
    assert await api.query(ask) == [[someone, "authenticated", None, "f"]]
    await api.script("set request.jwt.claim.sub = ''")
    assert await value(api, "select auth.uid()") == someone


async def test_ddl_notifies_the_data_api(supabase: SupabaseCluster) -> None:
    """NOTIFY pgrst, for what users make and drop and not for the services' own."""
    listener = await supabase.connect("authenticator")
    heard: list[tuple[str, str]] = []
    arrived = asyncio.Event()

    def hear(channel: str, payload: str) -> None:
        heard.append((channel, payload))
        arrived.set()

    listener.on_notification = hear
    await listener.script("listen pgrst; listen done")
    service = await supabase.connect("supabase_auth_admin")
    session = await supabase.connect()

    async def heard_after(sql: str) -> list[tuple[str, str]]:
        heard.clear()
        await (service if "auth." in sql else session).script(sql)
        await session.script("notify done")
        while ("done", "") not in heard:
            arrived.clear()
            await asyncio.wait_for(arrived.wait(), 10)
        return [note for note in heard if note[0] != "done"]

    reload = [("pgrst", "reload schema")]
    assert await heard_after("create table public.t (id int); alter table public.t add x int") == reload
    assert await heard_after("create function public.f() returns int language sql return 1") == reload
    assert await heard_after("comment on table public.t is 'x'") == reload
    assert await heard_after("create extension citext with schema extensions") == reload
    assert await heard_after("drop table public.t") == reload
    assert await heard_after("create temp table x (id int); drop table x") == []
    assert await heard_after("create table auth.x (id int)") == []
    assert await heard_after("drop table auth.x") == []


CLEAN_UP = """
do $$
declare r record;
begin
  for r in select nspname from pg_namespace where pg_has_role(nspowner, 'usage') and nspname !~ '^pg_'
           and nspname not in ('public', 'auth', 'storage', 'extensions', 'realtime', 'information_schema')
           and nspname not in ('vault', 'supabase_functions') loop
    execute format('drop schema if exists %I cascade', r.nspname);
  end loop;
  for r in select extname from pg_extension
           where extname not in ('plpgsql', 'supabase_vault', 'pgcrypto', 'uuid-ossp') loop
    execute format('drop extension if exists %I cascade', r.extname);
  end loop;
  for r in select oid::regprocedure as name from pg_proc where pronamespace = 'public'::regnamespace loop
    execute format('drop routine if exists %s cascade', r.name);
  end loop;
  for r in select relname from pg_class
           where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') loop
    execute format('drop table if exists public.%I cascade', r.relname);
  end loop;
  for r in select schemaname, tablename, policyname from pg_policies
           where schemaname in ('auth', 'storage') loop
    execute format('drop policy if exists %I on %I.%I', r.policyname, r.schemaname, r.tablename);
  end loop;
  for r in select t.tgname, c.oid::regclass as name from pg_trigger t join pg_class c on c.oid = t.tgrelid
           where not t.tgisinternal and c.relnamespace = 'auth'::regnamespace loop
    execute format('drop trigger if exists %I on %s', r.tgname, r.name);
  end loop;
  for r in select relname from pg_class where relnamespace = 'auth'::regnamespace and relkind = 'r'
           and relname <> 'schema_migrations' loop
    execute format('truncate auth.%I restart identity cascade', r.relname);
  end loop;
  for r in select pubname from pg_publication where pubname <> 'supabase_realtime' loop
    execute format('drop publication if exists %I', r.pubname);
  end loop;
  drop schema if exists public cascade; create schema public;
end $$;
"""


async def test_a_clean_up_as_tools_do_it(supabase: SupabaseCluster) -> None:
    """Everything that users' migrations made can be taken away as `postgres`, twice in a row."""
    session = await supabase.connect()
    make = PROFILES.format(security="security definer", profiles="public.profiles") + (
        "create schema app; create table app.t (id int); create extension pg_net with schema extensions;"
        "create extension postgres_fdw; create publication p for table app.t;"
        "create policy p on storage.objects for select using (true)"
    )
    if supabase.engine.source == "bindir":
        make = make.replace("create extension postgres_fdw;", "")
    for _ in range(2):
        await session.script(make)
        await session.script(CLEAN_UP)
        await session.script("grant usage on schema public to anon, authenticated, service_role")
    assert await session.query("select * from pg_policies where schemaname = 'storage'") == []
    assert await value(session, "select count(*) from auth.schema_migrations") != "0"
