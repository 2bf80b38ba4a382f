"""The roles of a fresh database, and how far each reaches."""

from __future__ import annotations

import pytest

from tests.kit.fix_supabase import SupabaseCluster, value
from toft.pg.sqlstate import PostgresError


async def test_only_the_bootstrap_role_is_superuser(supabase: SupabaseCluster) -> None:
    """`supabase_admin` is the only superuser."""
    session = await supabase.connect()
    supers = await session.query("select rolname from pg_roles where rolsuper")
    assert supers == [["supabase_admin"]]


async def test_roles_have_their_attributes(supabase: SupabaseCluster) -> None:
    """Who may log in, inherits, bypasses row level security, creates databases or replicates."""
    session = await supabase.connect()
    rows = await session.query(
        """select rolname, concat_ws(' ', case when rolcanlogin then 'login' end,
             case when rolinherit then 'inherit' end, case when rolbypassrls then 'bypassrls' end,
             case when rolcreatedb then 'createdb' end, case when rolreplication then 'replication' end)
           from pg_roles where rolname !~ '^pg_' and rolname <> 'supabase_admin'"""
    )
    assert {str(name): attributes for name, attributes in rows} == {
        "postgres": "login inherit bypassrls createdb replication",
        "anon": "inherit",
        "authenticated": "inherit",
        "service_role": "inherit bypassrls",
        "authenticator": "login",
        "supabase_auth_admin": "login",
        "supabase_storage_admin": "login",
        "supabase_realtime_admin": "",
        "supabase_functions_admin": "login",
        "supabase_replication_admin": "login inherit replication",
        "supabase_read_only_user": "login inherit bypassrls",
        "supabase_etl_admin": "inherit",
        "supabase_superuser": "inherit",
        "dashboard_user": "inherit createdb replication",
        "pgbouncer": "login inherit",
    }


async def test_createrole_stops_at_16(supabase: SupabaseCluster) -> None:
    """Before 16, where CREATEROLE leads to the operating system's user, only the superuser has it."""
    session = await supabase.connect()
    rows = await session.query("select rolname from pg_roles where rolcreaterole order by 1")
    expected = {"supabase_admin"}
    if supabase.major >= 16:
        expected |= {"postgres", "supabase_storage_admin", "supabase_functions_admin", "dashboard_user"}
    assert {name for [name] in rows} == expected


async def test_settings_of_roles(supabase: SupabaseCluster) -> None:
    """Time limits and search paths that a session of each role begins with."""
    session = await supabase.connect()
    rows = await session.query(
        "select r.rolname, s.setting from pg_db_role_setting d join pg_roles r on r.oid = d.setrole,"
        " unnest(d.setconfig) s (setting) order by 1, 2"
    )
    assert [f"{role}: {setting}" for role, setting in rows] == [
        "anon: statement_timeout=3s",
        "authenticated: statement_timeout=8s",
        "authenticator: lock_timeout=8s",
        "authenticator: statement_timeout=8s",
        'postgres: search_path="$user", public, extensions',
        'supabase_admin: search_path="$user", public, auth, extensions',
        "supabase_auth_admin: idle_in_transaction_session_timeout=60s",
        "supabase_auth_admin: search_path=auth",
        "supabase_functions_admin: search_path=supabase_functions",
        "supabase_storage_admin: search_path=storage",
    ]


async def test_the_data_api_becomes_its_callers(supabase: SupabaseCluster) -> None:
    """`authenticator` and the Storage service become anon, authenticated, service_role and nobody else."""
    for login in ("authenticator", "supabase_storage_admin"):
        session = await supabase.connect(login)
        for role in ("anon", "authenticated", "service_role"):
            await session.script(f"set role {role}; reset role")
        with pytest.raises(PostgresError, match="permission denied to set role"):
            await session.script("set role postgres")


async def test_postgres_owns_its_database(supabase: SupabaseCluster) -> None:
    """Database and schema public are the tenant's."""
    session = await supabase.connect()
    assert (
        await value(session, "select datdba::regrole from pg_database where datname = 'postgres'")
        == "postgres"
    )
    assert await value(session, "select pg_has_role('postgres', nspowner, 'usage') from pg_namespace"
                                " where nspname = 'public'") == "t"  # fmt: skip


async def test_no_role_but_those_that_were_given_one_has_a_password(supabase: SupabaseCluster) -> None:
    """A template carries no password that a clone would inherit."""
    session = await supabase.connect()
    rows = await session.query("select rolname from pg_authid where rolpassword is not null order by 1")
    assert {name for [name] in rows} == {
        "authenticator", "postgres", "supabase_admin", "supabase_auth_admin", "supabase_storage_admin",
    }  # fmt: skip
