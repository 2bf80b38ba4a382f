"""What new objects are born with, with both values of `auto_expose_new_tables`."""

from __future__ import annotations

import pytest

from tests.kit.fix_supabase import SupabaseCluster, value
from toft.engine.bootstrap import REVOKE_AUTO_EXPOSE
from toft.pg.connection import Connection

API_ROLES = ("anon", "authenticated", "service_role")
MAKE = """
create table public.t (id serial primary key);
create view public.v as select 1 as x;
create function public.f() returns int language sql return 1;
create schema app;
create table app.t (id serial primary key);
create function app.f() returns int language sql return 1;
"""


async def table_rights(session: Connection, role: str, table: str) -> set[str]:
    rights = ("select", "insert", "update", "delete", "truncate", "references", "trigger")
    held: set[str] = set()
    for right in rights:
        if await value(session, f"select has_table_privilege('{role}', '{table}', '{right}')") == "t":
            held.add(right)
    return held


@pytest.mark.parametrize("role", API_ROLES)
async def test_new_objects_in_public_are_exposed_by_default(supabase: SupabaseCluster, role: str) -> None:
    """Tables, views, sequences and functions of schema public are open to the API's roles."""
    session = await supabase.connect()
    await session.script(MAKE)
    everything = {"select", "insert", "update", "delete", "truncate", "references", "trigger"}
    assert await table_rights(session, role, "public.t") == everything
    assert await table_rights(session, role, "public.v") == everything
    for right in ("usage", "select", "update"):
        assert (
            await value(session, f"select has_sequence_privilege('{role}', 'public.t_id_seq', '{right}')")
            == "t"
        )
    assert await value(session, f"select has_function_privilege('{role}', 'public.f()', 'execute')") == "t"


@pytest.mark.parametrize("role", API_ROLES)
async def test_without_auto_expose_little_is_left(supabase: SupabaseCluster, role: str) -> None:
    """After the revokes: no rows and no sequences, but TRUNCATE stays, and PUBLIC still calls functions."""
    session = await supabase.connect()
    await session.script(REVOKE_AUTO_EXPOSE)
    await session.script(MAKE)
    assert await table_rights(session, role, "public.t") == {"truncate", "references", "trigger"}
    assert await table_rights(session, role, "public.v") == {"truncate", "references", "trigger"}
    for right, held in (("usage", "f"), ("select", "f"), ("update", "t")):
        assert (
            await value(session, f"select has_sequence_privilege('{role}', 'public.t_id_seq', '{right}')")
            == held
        )
    assert await value(session, f"select has_function_privilege('{role}', 'public.f()', 'execute')") == "t"
    acl = await value(session, "select relacl::text from pg_class where oid = 'public.t'::regclass")
    assert acl is not None
    assert f"{role}={'Dxtm' if supabase.major >= 17 else 'Dxt'}/postgres" in acl


@pytest.mark.parametrize("role", API_ROLES)
async def test_schemas_of_the_users_get_no_grants(supabase: SupabaseCluster, role: str) -> None:
    """`create schema app` needs explicit grants before the API can use it."""
    session = await supabase.connect()
    await session.script(MAKE)
    assert await value(session, f"select has_schema_privilege('{role}', 'app', 'usage')") == "f"
    assert await table_rights(session, role, "app.t") == set()


async def test_who_may_use_the_schemas(supabase: SupabaseCluster) -> None:
    """Usage and create, schema by schema."""
    session = await supabase.connect()
    rows = await session.query(
        """select n.nspname, n.nspowner::regrole::text, string_agg(r.rolname || '=' ||
             case when has_schema_privilege(r.oid, n.oid, 'usage') then 'U' else '' end ||
             case when has_schema_privilege(r.oid, n.oid, 'create') then 'C' else '' end,
             ' ' order by r.rolname)
           from pg_namespace n, pg_roles r
           where r.rolname in ('anon', 'service_role', 'supabase_auth_admin', 'supabase_storage_admin')
             and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
           group by 1, 2 order by 1"""
    )
    api = "anon=U service_role=U"
    assert [" ".join(str(cell) for cell in row) for row in rows] == [
        f"auth supabase_admin {api} supabase_auth_admin=UC supabase_storage_admin=",
        f"extensions postgres {api} supabase_auth_admin= supabase_storage_admin=",
        f"graphql supabase_admin {api} supabase_auth_admin= supabase_storage_admin=",
        f"graphql_public supabase_admin {api} supabase_auth_admin= supabase_storage_admin=",
        "pgbouncer pgbouncer anon= service_role= supabase_auth_admin= supabase_storage_admin=",
        f"public pg_database_owner {api} supabase_auth_admin=U supabase_storage_admin=U",
        f"realtime supabase_admin {api} supabase_auth_admin= supabase_storage_admin=",
        f"storage supabase_admin {api} supabase_auth_admin= supabase_storage_admin=UC",
        f"supabase_functions supabase_admin {api} supabase_auth_admin= supabase_storage_admin=",
        "toft supabase_admin anon= service_role= supabase_auth_admin= supabase_storage_admin=",
        "vault supabase_admin anon= service_role=U supabase_auth_admin= supabase_storage_admin=",
    ]


async def test_vault_is_for_postgres_and_the_service_role(supabase: SupabaseCluster) -> None:
    """They make, read, change and delete secrets through the functions and the view; the rest sees none."""
    session = await supabase.connect()
    secret = await value(session, "select vault.create_secret('s3cret', 'name', 'about')")
    assert secret is not None
    await session.query("select vault.update_secret($1::uuid, 'changed')", secret)
    rows = await session.query("select name, description, decrypted_secret from vault.decrypted_secrets")
    assert rows == [["name", "about", "changed"]]
    api = await supabase.connect("authenticator")
    await api.script("set role service_role")
    assert await value(api, "select decrypted_secret from vault.decrypted_secrets") == "changed"
    await api.script("set role anon")
    with pytest.raises(Exception, match="permission denied for schema vault"):
        await api.script("select * from vault.decrypted_secrets")
    await session.query("delete from vault.secrets where id = $1::uuid", secret)


async def test_the_publication_is_empty_and_the_tenants(supabase: SupabaseCluster) -> None:
    """`supabase_realtime` belongs to postgres and has no tables yet."""
    session = await supabase.connect()
    rows = await session.query("select pubname, pubowner::regrole::text, puballtables from pg_publication")
    assert rows == [["supabase_realtime", "postgres", "f"]]
    assert await session.query("select * from pg_publication_tables") == []
