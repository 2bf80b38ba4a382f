"""The Data API as a process of its own, over a Postgres that knows nothing of Toft."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

import toft
from tests.kit.fix_postgres import PASSWORD, SUPERUSER, PlainCluster, find_free_port
from toft.pg.connection import Connection, connect
from toft.tokens.jwt import KeyRing

SECRET = "reallyreallyreallyreallyverysafe"
DATA_API = (sys.executable, "-m", "toft.cli.main", "data-api")
SETUP = """
drop schema if exists api cascade;
create schema api;
create table api.things (id int primary key, name text);
insert into api.things values (1, 'one');
do $$ begin
  if to_regrole('web') is null then create role web; create role visitor; end if;
end $$;
grant usage on schema api to web, visitor;
grant all on api.things to web;
create function api.check_request() returns void language plpgsql as $$ begin
  perform set_config('response.headers', '[{"X-Checked": "yes"}]', true);
end $$;
create function api.wait_for_lock() returns text language sql volatile as
  $$ select 'done' from (select pg_advisory_xact_lock(42)) x $$;
"""


class Standalone:
    """The running process and a client for it."""

    def __init__(self, process: asyncio.subprocess.Process, client: httpx.AsyncClient, admin: str) -> None:
        self.process = process
        self.client = client
        self.admin = admin

    async def admin_status(self, path: str) -> int:
        async with httpx.AsyncClient() as client:
            return (await client.get(self.admin + path)).status_code


def bearer(role: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KeyRing(SECRET).sign({'role': role})}"}


@pytest.fixture
async def standalone(plain_postgres: PlainCluster, plain_connection: Connection) -> AsyncIterator[Standalone]:
    """Started with the `PGRST_*` variables that upstream reads."""
    await plain_connection.script(SETUP)
    admin_port = find_free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(toft.__file__).parents[1]),
        "PGRST_DB_SCHEMAS": "api",
        "PGRST_DB_ANON_ROLE": "visitor",
        "PGRST_DB_PRE_REQUEST": "api.check_request",
        "PGRST_JWT_SECRET": json.dumps({"keys": [{"kty": "oct", "k": _base64(SECRET), "alg": "HS256"}]}),
        "PGRST_SERVER_HOST": "127.0.0.1",
        "PGRST_SERVER_PORT": "0",
        "PGRST_ADMIN_SERVER_PORT": str(admin_port),
    }
    url = f"postgresql://{SUPERUSER}:{PASSWORD}@127.0.0.1:{plain_postgres.port}/postgres?sslmode=prefer"
    process = await asyncio.create_subprocess_exec(
        *DATA_API,
        *("--db-uri", url, "--json"),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    told = json.loads(await process.stdout.readline())
    assert told["admin"] == f"http://127.0.0.1:{admin_port}"
    async with httpx.AsyncClient(base_url=told["listening"]) as client:
        yield Standalone(process, client, told["admin"])
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0


def _base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


async def test_it_serves_rows(standalone: Standalone) -> None:
    """Tokens choose the role, the pre-request function is called, web pages may ask."""
    client = standalone.client
    reply = await client.get("/things", headers={**bearer("web"), "Origin": "http://x"})
    assert (reply.status_code, reply.json()) == (200, [{"id": 1, "name": "one"}])
    assert reply.headers["x-checked"] == "yes"
    assert reply.headers["access-control-allow-origin"] == "*"
    assert (await client.get("/things")).status_code == 401
    assert (await client.get("/things", headers={"Authorization": "Bearer x"})).json()["code"] == "PGRST301"
    reply = await client.post("/things", json={"id": 2, "name": "two"}, headers=bearer("web"))
    assert reply.status_code == 201
    preflight = {"Origin": "http://x", "Access-Control-Request-Method": "GET"}
    assert (await client.options("/things", headers=preflight)).headers["access-control-max-age"] == "86400"
    assert (await client.get("/", headers=bearer("web"))).json()["swagger"] == "2.0"


async def test_new_tables_are_found(standalone: Standalone, plain_connection: Connection) -> None:
    """After NOTIFY, and without one when a request names what was not there a moment ago."""
    client, headers = standalone.client, bearer("web")
    assert (await client.get("/things", headers=headers)).status_code == 200
    await plain_connection.script(
        "create table api.later (id int); grant all on api.later to web; notify pgrst"
    )
    assert (await client.get("/later", headers=headers)).status_code in {200, 404}
    await plain_connection.script("alter table api.things rename to items; notify pgrst, 'reload schema'")
    # Answers of the listener's connection come in order, so by now it has heard.
    for _ in range(50):
        reply = await client.get("/items", headers=headers)
        if reply.status_code == 200:
            break
        await asyncio.sleep(0.05)
    assert reply.status_code == 200


async def test_the_admin_port(standalone: Standalone) -> None:
    """Alive, ready before anybody asked anything, and full of figures."""
    while await standalone.admin_status("/ready") != 200:
        await asyncio.sleep(0.02)
    assert (await standalone.client.get("/things", headers=bearer("web"))).status_code == 200
    assert await standalone.admin_status("/live") == 200
    assert await standalone.admin_status("/ready") == 200
    assert await standalone.admin_status("/nothing") == 404
    async with httpx.AsyncClient() as client:
        metrics = (await client.get(f"{standalone.admin}/metrics")).text
        assert "pgrst_db_pool_max 10\n" in metrics
        assert 'pgrst_schema_cache_loads_total{status="SUCCESS"} ' in metrics
        assert "pgrst_jwt_cache_requests_total 1\n" in metrics
        assert "dbTables" in (await client.get(f"{standalone.admin}/schema_cache")).json()


async def test_it_ends_when_what_runs_has_been_answered(
    standalone: Standalone, plain_connection: Connection
) -> None:
    """SIGTERM in the middle of a request: the answer comes, then the process ends with 0 and says nothing."""
    await plain_connection.script("select pg_advisory_lock(42)")
    asked = asyncio.ensure_future(
        standalone.client.post("/rpc/wait_for_lock", headers=bearer("web"), timeout=30)
    )
    waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    while await plain_connection.query(waiting) != [["1"]]:
        await asyncio.sleep(0.02)
    standalone.process.send_signal(signal.SIGTERM)
    while await _listens(standalone):
        await asyncio.sleep(0.02)
    assert not asked.done()
    await plain_connection.script("select pg_advisory_unlock(42)")
    assert (await asked).json() == "done"
    assert await standalone.process.wait() == 0
    assert standalone.process.stderr is not None
    assert await standalone.process.stderr.read() == b""


async def _listens(standalone: Standalone) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", standalone.client.base_url.port)
    except ConnectionRefusedError:
        return False
    writer.close()
    return True


async def _failure(*words: str, **environ: str) -> tuple[int | None, list[str]]:
    """The status and what is said of a call that does not serve."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(toft.__file__).parents[1]), **environ}
    process = await asyncio.create_subprocess_exec(
        *DATA_API, *words, env=environment, stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
    )
    _, said = await process.communicate()
    return process.returncode, said.decode().splitlines()


async def test_it_says_what_is_wrong_with_its_settings(tmp_path: Path) -> None:
    """One line and a hint, and no secret, whatever the setting."""
    secret = "PGRST_JWT_SECRET"
    file = tmp_path / "postgrest.conf"
    file.write_text('db-schemas = "api"\nserver port 3000\n')
    for words, environ, wanted in (
        ([], {secret: "short"}, "The JWT secret must be at least 32 characters long."),
        (["--db-uri", "mysql://me:hidden@x"], {}, "db-uri: a connection URL begins with `postgresql://`"),
        (["--config", str(file)], {}, "line 2 of the configuration file is not `name = value`"),
        (
            ["--config", "/nowhere"],
            {},
            "the configuration file /nowhere cannot be read: No such file or directory",
        ),
        (["--port", "x"], {}, "server-port is not a number: x"),
        (["--port", "70000"], {}, "server-port is not a port: 70000"),
        ([], {"PGRST_LOG_LEVEL": "loud"}, "log-level is none of crit, error, warn, info, debug: loud"),
    ):
        status, said = await _failure(*words, **environ)
        assert (status, said[0], len(said)) == (2, f"error: {wanted}", 2)
        assert "hidden" not in "".join(said)


async def test_it_says_why_it_cannot_serve(plain_postgres: PlainCluster) -> None:
    """A port that is taken, a password that is wrong: it ends, with what to do."""
    url = f"postgresql://{SUPERUSER}:{PASSWORD}@127.0.0.1:{plain_postgres.port}/postgres"
    status, said = await _failure("--db-uri", url, "--port", str(plain_postgres.port))
    assert status == 125
    assert said[0].startswith(f"error: cannot listen on http://127.0.0.1:{plain_postgres.port}: ")
    status, said = await _failure("--db-uri", url.replace(PASSWORD, "hidden"), "--port", "0")
    assert (status, len(said)) == (125, 2)
    assert said[0].startswith("error: the database cannot be served: password authentication failed")


async def test_a_configuration_file_and_secrets_in_files(
    plain_postgres: PlainCluster, plain_connection: Connection, tmp_path: Path
) -> None:
    """The file is read as upstream does, variables win over it, `@PATH` is the content of that file."""
    await plain_connection.script(SETUP)
    url = f"postgresql://{SUPERUSER}:{PASSWORD}@127.0.0.1:{plain_postgres.port}/postgres"
    (tmp_path / "uri").write_text(url + "\n")
    (tmp_path / "conf").write_text(
        f'db-uri = "@{tmp_path}/uri" # not shown to others\n'
        'db-schemas = "api"\ndb-anon-role = "visitor"\n\n# remark\nserver-port = 1\n'
    )
    process = await asyncio.create_subprocess_exec(
        *(*DATA_API, "--config", str(tmp_path / "conf"), "--json"),
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(toft.__file__).parents[1]),
            "PGRST_DB_ANON_ROLE": "web",
            "PGRST_SERVER_PORT": "0",
        },
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    told = json.loads(await process.stdout.readline())
    async with httpx.AsyncClient(base_url=told["listening"]) as client:
        assert (await client.get("/things")).json() == [{"id": 1, "name": "one"}]
    process.send_signal(signal.SIGINT)
    assert await process.wait() == 0


async def test_a_body_of_a_hundred_megabytes(standalone: Standalone) -> None:
    """413 in words that clients read, and the next request is fine."""
    reply = await standalone.client.post("/things", content=b" " * (100 << 20), headers=bearer("web"))
    assert (reply.status_code, reply.json()["code"]) == (413, "TOFT-BODY-TOO-LARGE")
    assert (await standalone.client.get("/things", headers=bearer("web"))).status_code == 200


async def make_victim(cluster: PlainCluster, admin: Connection) -> None:
    """A database of its own, with the same in it."""
    await admin.script("create database victim")
    inside = await connect(cluster.socket_path, SUPERUSER, PASSWORD, "victim")
    await inside.script(SETUP)
    inside.close()


async def test_a_database_that_is_dropped_and_made_again(
    plain_postgres: PlainCluster, plain_connection: Connection
) -> None:
    """Without it 503; with the next one of its name all works, and no restart was needed."""
    await plain_connection.script("drop database if exists victim")
    await make_victim(plain_postgres, plain_connection)
    process = await asyncio.create_subprocess_exec(
        *(*DATA_API, "--json", "--port", "0", "--schemas", "api", "--anon-role", "web"),
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(toft.__file__).parents[1]),
            "PGRST_DB_URI": f"postgresql://{SUPERUSER}:{PASSWORD}@127.0.0.1:{plain_postgres.port}/victim",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    told = json.loads(await process.stdout.readline())
    async with httpx.AsyncClient(base_url=told["listening"]) as client:
        assert (await client.get("/things")).json() == [{"id": 1, "name": "one"}]
        await plain_connection.script("drop database victim with (force)")
        replies = [await client.get("/things") for _ in range(3)]
        assert [reply.status_code for reply in replies] == [503] * 3
        assert {reply.headers["retry-after"] for reply in replies} == {"1"}
        await make_victim(plain_postgres, plain_connection)
        reply = await client.get("/things")
        assert (reply.status_code, reply.json()) == (200, [{"id": 1, "name": "one"}])
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    await plain_connection.script("drop database victim with (force)")
