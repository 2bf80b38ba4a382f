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
from toft.pg.connection import Connection
from toft.tokens.jwt import KeyRing

SECRET = "reallyreallyreallyreallyverysafe"
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
        sys.executable,
        *("-m", "toft.rest.standalone", "--db-uri", url),
        env=environment,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    line = (await process.stderr.readline()).decode()
    assert line.startswith("listening on http://127.0.0.1:"), line + (await process.stderr.read()).decode()
    async with httpx.AsyncClient(base_url=line.split()[-1]) as client:
        yield Standalone(process, client, f"http://127.0.0.1:{admin_port}")
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
    """Alive, ready, and full of figures."""
    assert (await standalone.client.get("/things", headers=bearer("web"))).status_code == 200
    assert await standalone.admin_status("/live") == 200
    assert await standalone.admin_status("/ready") == 200
    assert await standalone.admin_status("/nothing") == 404
    async with httpx.AsyncClient() as client:
        assert "pgrst_db_pool_max 10" in (await client.get(f"{standalone.admin}/metrics")).text
        assert "dbTables" in (await client.get(f"{standalone.admin}/schema_cache")).json()


async def test_it_says_what_is_wrong_with_its_settings() -> None:
    """One line and status 1."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(toft.__file__).parents[1]),
        "PGRST_JWT_SECRET": "short",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "toft.rest.standalone", env=environment, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 1
    assert said == b"error: The JWT secret must be at least 32 characters long.\n"
