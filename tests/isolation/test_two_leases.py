"""Lease A against lease B: whatever the holder of A tries, it does not reach B. Both are real and alive."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.kit.fix_daemon import RunningDaemon

type Lease = dict[str, Any]

SECRET = "b-keeps-this-to-itself"

#: Everything that the server's own process can see, as far as it may look.
WALK = """
create function walk(folder text, depth int) returns table (path text) language plpgsql as $$
declare name text;
begin
  for name in select pg_ls_dir(folder || '/') loop
    path := folder || '/' || name;
    return next;
    if depth < 12 and (pg_stat_file(path, true)).isdir then
      return query select w.path from walk(path, depth + 1) w;
    end if;
  end loop;
exception when others then null;
end $$
"""


@pytest.fixture
async def keeper(pair: tuple[Lease, Lease]) -> tuple[Lease, Lease]:
    """A and B, and B holds a row that A must never see."""
    session = await _session(pair[1])
    await session.execute(
        f"create table secret (text text); insert into secret values ('{SECRET}');"
        "grant select on secret to anon"
    )
    await session.close()
    return pair


async def _session(lease: Lease, **other: Any) -> asyncpg.Connection[Any]:
    given = {"host": "127.0.0.1", "port": lease["db_port"], "user": "postgres", "password": lease["password"]}
    return await asyncpg.connect(**{**given, "database": "postgres", "ssl": False, **other})


def _get(lease: Lease, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
    request = urllib.request.Request(f"http://127.0.0.1:{lease['http_port']}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


async def test_password_of_another_lease_is_refused(pair: tuple[Lease, Lease]) -> None:
    """A's password opens no session on B, for any login role."""
    a, b = pair
    for user in (
        "postgres",
        "authenticator",
        "supabase_admin",
        "supabase_auth_admin",
        "supabase_storage_admin",
    ):
        with pytest.raises(asyncpg.InvalidPasswordError):
            await _session(b, user=user, password=a["password"])


async def test_keys_of_another_lease_are_refused(keeper: tuple[Lease, Lease]) -> None:
    """None of A's API keys reads B's table, which B's own anon key may read."""
    a, b = keeper
    status, body = _get(b, "/rest/v1/secret?select=text", {"apikey": b["anon_key"]})
    assert (status, json.loads(body)) == (200, [{"text": SECRET}])
    for name in ("anon_key", "service_role_key", "publishable_key", "secret_key"):
        for headers in ({"apikey": a[name]}, {"apikey": a[name], "authorization": f"Bearer {a[name]}"}):
            status, body = _get(b, "/rest/v1/secret?select=text", headers)
            assert status == 401, name
            assert SECRET.encode() not in body
        mixed = {"apikey": b["anon_key"], "authorization": f"Bearer {a[name]}"}
        status, body = _get(b, "/rest/v1/secret?select=text", mixed)
        if a[name].startswith("sb_"):
            continue  # an opaque bearer is not a token: the apikey decides, and that is B's own
        assert status == 401, name
        assert SECRET.encode() not in body


@pytest.mark.parametrize(
    "statement",
    [
        "copy (select 1) to program 'id'",
        "create table loot (line text); copy loot from program 'cat /etc/passwd'",
        "create table loot (line text); copy loot from '/etc/passwd'",
        "copy (select 1) to '/tmp/toft-was-here'",
        "select pg_read_file('/etc/passwd')",
        "select pg_read_binary_file('postgresql.conf')",
        "select pg_ls_dir('/')",
        "select * from pg_stat_file('/etc/passwd')",
        "select lo_import('/etc/passwd')",
        "select lo_export(0, '/tmp/toft-was-here')",
        "create extension file_fdw",
        "create extension plpython3u",
        "create extension adminpack",
        "alter system set listen_addresses = '*'",
        "alter role postgres superuser",
        "create role evil superuser login",
        "grant pg_execute_server_program to postgres",
        "grant pg_read_server_files to postgres",
        "grant supabase_admin to postgres",
        "set session authorization supabase_admin",
        "set role supabase_admin",
        "load '/tmp/evil.so'",
        "create function evil() returns void language c as '/tmp/evil.so', 'evil'",
        "update pg_catalog.pg_authid set rolsuper = true where rolname = 'postgres'",
        "alter event trigger pgrst_ddl_watch disable",
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'supabase_admin'; select 1/0",
    ],
)
async def test_no_way_out_of_the_database(lease: Lease, statement: str) -> None:
    """The tenant's `postgres` is refused all that would touch files, programs or the superuser."""
    session = await _session(lease)
    with pytest.raises(asyncpg.PostgresError):
        await session.execute(statement)
    assert await session.fetchval("select rolsuper from pg_roles where rolname = 'postgres'") is False
    await session.close()
    assert not Path("/tmp/toft-was-here").exists()


async def test_dblink_reaches_neither_loopback_nor_sockets(
    keeper: tuple[Lease, Lease], toftd: RunningDaemon
) -> None:
    """From inside A's database no port and no socket of B can be dialled, even with B's password."""
    a, b = keeper
    session = await _session(a)
    await session.execute("create extension if not exists dblink with schema extensions")
    targets = [
        f"{who} {where}"
        for who in [f"user=postgres password={b['password']} dbname=postgres connect_timeout=2"]
        for where in (
            f"host=127.0.0.1 port={b['db_port']} sslmode=disable",
            f"host=localhost port={b['http_port']}",
            f"host={toftd.run}/b/{b['backend_id']}",
        )
    ]
    for target in targets:
        with pytest.raises(asyncpg.PostgresError) as refused:
            await session.fetch(
                "select * from extensions.dblink($1, 'select text from secret') as t(text text)", target
            )
        assert SECRET not in str(refused.value)
    await session.close()


async def test_superuser_inside_sees_only_its_own_walls(
    pair: tuple[Lease, Lease], superuser: Any, toftd: RunningDaemon
) -> None:
    """Even code that runs as A's postmaster's own user finds no other backend, no home, no daemon socket."""
    a, b = pair
    session = await superuser(a)
    await session.execute(WALK)
    seen = {row["path"] for row in await session.fetch("select path from walk('', 0)")}
    assert f"/{toftd.home.relative_to('/')}/backends/{a['backend_id']}/pgdata/PG_VERSION" in seen
    assert not [path for path in seen if b["backend_id"] in path]
    assert not [path for path in seen if path.endswith(("toftd.sock", "state.sqlite3", "/etc/passwd"))]
    assert not [path for path in seen if path.startswith(("/home", "/proc", "/root"))]
    with pytest.raises(asyncpg.PostgresError):
        await session.fetch(
            "select pg_read_file($1)", f"{toftd.home}/backends/{b['backend_id']}/pgdata/PG_VERSION"
        )
    with pytest.raises(asyncpg.PostgresError):
        await session.execute("copy (select 1) to program 'id'")


async def test_no_platform_secret_in_the_tenants_database(pair: tuple[Lease, Lease]) -> None:
    """No table, setting or function source that `postgres` can read holds a key of the lease."""
    a, _ = pair
    session = await _session(a)
    needles = [
        a[name]
        for name in ("jwt_secret", "secret_key", "service_role_key", "s3_secret_access_key", "password")
    ]
    texts = [
        *await session.fetch("select setting as text from pg_settings"),
        *await session.fetch("select prosrc as text from pg_proc"),
        *await session.fetch("select array_to_string(setconfig, ',') as text from pg_db_role_setting"),
        *await session.fetch("select rolpassword as text from pg_authid where rolpassword is not null"),
    ]
    for table in await session.fetch(
        "select schemaname, tablename from pg_tables "
        "where has_table_privilege(format('%I.%I', schemaname, tablename), 'select')"
    ):
        name = f'"{table["schemaname"]}"."{table["tablename"]}"'
        texts += await session.fetch(f"select t::text as text from {name} t limit 10000")
    await session.close()
    joined = "\n".join(row["text"] or "" for row in texts)
    for needle in needles:
        assert needle not in joined


async def test_a_users_session_of_one_lease_is_nothing_to_the_other(pair: tuple[Lease, Lease]) -> None:
    """An access token that A's Auth issued opens neither B's Data API nor B's Auth."""
    a, b = pair
    body = json.dumps({"email": "mallory@example.com", "password": "correct horse battery"}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{a['http_port']}/auth/v1/signup",
        data=body,
        headers={"apikey": a["anon_key"], "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        token = json.loads(answer.read())["access_token"]
    bearer = {"apikey": b["anon_key"], "authorization": f"Bearer {token}"}
    assert _get(b, "/rest/v1/secret", bearer)[0] == 401
    assert _get(b, "/auth/v1/user", bearer)[0] == 403
