"""The schemas `auth` and `storage` on every engine: shape, helpers, and what users' SQL does with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.fix_supabase import SupabaseCluster, refused, value

GOLDEN = Path(__file__).parents[2] / "golden" / "schemas"
ADA = "00000000-0000-4000-8000-00000000000a"


@pytest.mark.parametrize("schema", ["auth", "storage"])
async def test_shape(supabase: SupabaseCluster, schema: str):
    """Columns, keys, indexes, types, functions and triggers are those that upstream's migrations leave."""
    admin = await supabase.connect("supabase_admin")
    await admin.script("set search_path = ''")
    facts: list[str] = []
    for statement in (GOLDEN / "catalogue.sql").read_text().replace("{schema}", schema).split(";\n"):
        if "select" in statement:
            facts += [row[0] or "" for row in await admin.query(statement)]
    expected = (GOLDEN / f"{schema}.txt").read_text().splitlines()
    assert facts == expected


async def test_history_is_filled(supabase: SupabaseCluster):
    """Tools that read it find the last migration."""
    admin = await supabase.connect("supabase_admin")
    assert await value(admin, "select max(version) from auth.schema_migrations") == "20260625000000"
    assert await value(admin, "select count(*) from storage.migrations") == "64"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [None, None, None, None]),
        ({"request.jwt.claims": ""}, [None, None, None, None]),
        (
            {"request.jwt.claims": f'{{"sub":"{ADA}","role":"r","email":"e","x":1}}'},
            [ADA, "r", "e", "1"],
        ),
        ({"request.jwt.claim.sub": ADA, "request.jwt.claims": '{"sub":"x"}'}, [ADA, None, None, None]),
        ({"request.jwt.claim.sub": "", "request.jwt.claims": f'{{"sub":"{ADA}"}}'}, [ADA, None, None, None]),
    ],
)
async def test_who_asks(supabase: SupabaseCluster, settings: dict[str, str], expected: list):
    """NULL outside a request; the claim's own setting first, then the JSON; empty is absent."""
    session = await supabase.connect("postgres")
    await session.script("begin")
    for name, text in settings.items():
        await session.query("select set_config($1, $2, true)", name, text)
    found = await session.query("select auth.uid(), auth.role(), auth.email(), auth.jwt() ->> 'x'")
    assert found == [expected]
    await session.script("rollback")


async def test_users_sql_on_auth(supabase: SupabaseCluster):
    """Generated columns, partial uniqueness, foreign keys and cascades, as seeds and migrations meet them."""
    postgres = await supabase.connect("postgres")
    insert = f"insert into auth.users (id, email) values ('{ADA}', 'ada@example.com')"
    assert await refused(postgres, insert) is None
    assert await refused(
        postgres, "insert into auth.users (id, confirmed_at) values (gen_random_uuid(), now())"
    )
    again = "insert into auth.users (id, email) values (gen_random_uuid(), 'ada@example.com')"
    assert await refused(postgres, again) == "23505"
    assert await refused(postgres, f"{again} on conflict (email) do nothing") == "42P10"
    assert (
        await refused(postgres, f"{again} on conflict (email) where is_sso_user = false do nothing") is None
    )
    identity = (
        f"insert into auth.identities (user_id, provider, identity_data) values ('{ADA}', 'email', '{{}}')"
    )
    assert await refused(postgres, identity) == "23502"
    await postgres.script(
        "create table public.profiles (id uuid primary key references auth.users (id) on delete cascade);"
        f"insert into public.profiles values ('{ADA}');"
        "create view public.people as select id, email from auth.users;"
        "delete from auth.users"
    )
    assert await value(postgres, "select count(*) from public.profiles") == "0"
    for role in ("anon", "authenticated", "service_role"):
        await postgres.script(f"set role {role}")
        assert await refused(postgres, "select from auth.users") == "42501"
        assert await refused(postgres, "select auth.uid()") is None
        await postgres.script("reset role")


async def test_users_sql_on_storage(supabase: SupabaseCluster):
    """Buckets by migration, policies and triggers on objects, helpers, and no deletion past the service."""
    postgres = await supabase.connect("postgres")
    await postgres.script(
        "insert into storage.buckets (id, name, public) values ('a', 'a', true) on conflict (id) do nothing;"
        "create policy p on storage.objects for select to anon using (bucket_id = 'a'"
        " and (storage.foldername(name))[1] = 'x' and storage.extension(name) = 'png');"
        "insert into storage.objects (bucket_id, name)"
        " values ('a', 'x/1.png'), ('a', 'y/1.png'), ('a', 'x/1.gif')"
    )
    assert await refused(postgres, "delete from storage.objects") == "42501"
    assert await refused(postgres, "delete from storage.buckets") == "42501"
    long = "insert into storage.buckets (id, name) values ('b', repeat('x', 101))"
    assert await refused(postgres, long) == "P0001"
    await postgres.script("set role anon")
    assert await value(postgres, "select count(*) from storage.objects") == "1"
    assert await value(postgres, "select string_agg(name, ' ') from storage.search('', 'a')") == "x"
    await postgres.script("reset role")
    key = "'a/b/c.d.e'"
    helpers = f"select storage.foldername({key}), storage.filename({key}), storage.extension({key})"
    assert await postgres.query(helpers) == [["{a,b}", "c.d.e", "e"]]
    assert await postgres.query("select storage.foldername('a'), storage.extension('a')") == [["{}", "a"]]
    assert await refused(postgres, "select storage.can_insert_object('a', 'z', null, '{}')") == "PT200"
    assert await value(postgres, "select count(*) from storage.objects where name = 'z'") == "0"
    await postgres.script(
        "begin; set local storage.allow_delete_query = 'true'; delete from storage.objects; commit"
    )
    assert await value(postgres, "select count(*) from storage.objects") == "0"
