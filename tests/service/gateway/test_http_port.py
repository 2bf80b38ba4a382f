"""The HTTP port: keys at the door, routes, CORS, and the services behind them on a real Supabase database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.kit.fix_gateway import Daemon, make_spec
from tests.kit.fix_supabase import PASSWORD, SupabaseCluster, SupabaseTemplates
from toft.protocol.worker import Attach, BackendSpec, Detach, Failed, Relisten, SetAwake, StorageSettings
from toft.tokens.apikey import make_publishable
from toft.world import SystemEntropy

TODOS = """
create table todos (id int primary key, title text not null, owner uuid default auth.uid());
alter table todos enable row level security;
create policy anyone_reads on todos for select using (true);
create policy owners_write on todos for insert to authenticated with check (owner = auth.uid());
insert into todos values (1, 'wash', null);
"""


@pytest.fixture
async def cluster(supabase_templates: SupabaseTemplates) -> AsyncIterator[SupabaseCluster]:
    """A Supabase database with one table, on the newest engine of this machine."""
    cluster = await supabase_templates.start(18)
    session = await cluster.connect()
    await session.script(TODOS)
    yield cluster
    await supabase_templates.stop(cluster)


@pytest.fixture
async def spec(daemon: Daemon, cluster: SupabaseCluster, tmp_path: Path) -> BackendSpec:
    """That database, attached."""
    spec = make_spec(cluster.socket_path, password=PASSWORD, objects_path=str(tmp_path / "objects"))
    await daemon.do(Attach, spec)
    return spec


@pytest.fixture
async def http(spec: BackendSpec) -> AsyncIterator[httpx.AsyncClient]:
    """A client of its HTTP port, without any key."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{spec.http_port}", timeout=20) as client:
        yield client


def keyed(key: str) -> dict[str, str]:
    return {"apikey": key, "authorization": f"Bearer {key}"}


async def test_door(http: httpx.AsyncClient) -> None:
    """The door itself answers at its root, for its health, and for paths that lead nowhere."""
    assert (await http.get("/")).json()["name"] == "toft"
    assert (await http.get("/health")).json() == {"status": "ok"}
    assert (await http.head("/health")).status_code == 200
    for path in ("/rest/v2/todos", "/functions/v2/x", "/restaurant", "/rest/v1x"):
        answer = await http.get(path)
        assert (answer.status_code, answer.json()) == (404, {"message": "no Route matched with those values"})


async def test_api_keys(http: httpx.AsyncClient, spec: BackendSpec) -> None:
    """Each of the four keys opens the door, as apikey alone, as bearer alone and as both."""
    secrets = spec.secrets
    for key in (secrets.anon_key, secrets.publishable_key, secrets.service_role_key, secrets.secret_key):
        both = keyed(key)
        for headers in (both, {"apikey": key}, {"authorization": both["authorization"]}):
            answer = await http.get("/rest/v1/todos?select=id", headers=headers)
            assert (answer.status_code, answer.json()) == (200, [{"id": 1}]), headers


async def test_roles_of_keys(http: httpx.AsyncClient, spec: BackendSpec) -> None:
    """Publishable keys are anon and secret keys service_role: the one may not write here, the other may."""
    row = {"id": 2, "title": "dry"}
    refused = await http.post("/rest/v1/todos", json=row, headers=keyed(spec.secrets.publishable_key))
    assert (refused.status_code, refused.json()["code"]) == (401, "42501")
    done = await http.post("/rest/v1/todos", json=row, headers=keyed(spec.secrets.secret_key))
    assert done.status_code == 201


@pytest.mark.parametrize("path", ["/rest/v1/todos", "/rest/v1/", "/auth/v1/user", "/auth/v1/settings"])
async def test_no_key(http: httpx.AsyncClient, path: str) -> None:
    """Without a key the door stays shut, in the hosted door's words."""
    answer = await http.get(path)
    assert (answer.status_code, answer.json()["message"]) == (401, "No API key found in request")


@pytest.mark.parametrize("path", ["/auth/v1/.well-known/jwks.json", "/auth/v1/verify?token=x&type=signup"])
async def test_open_paths(http: httpx.AsyncClient, path: str) -> None:
    """What links in mails and OAuth clients use is open."""
    answer = await http.get(path)
    assert "API key" not in answer.text


async def test_wrong_keys(http: httpx.AsyncClient) -> None:
    """A key of another project is refused, wherever it stands; a foreign token is the service's to refuse."""
    foreign = make_publishable(SystemEntropy())
    for headers in (keyed(foreign), {"apikey": foreign}, {"authorization": f"Bearer {foreign}"}):
        answer = await http.get("/rest/v1/todos", headers=headers)
        assert (answer.status_code, answer.json()["message"]) == (401, "Invalid API key")
    answer = await http.get("/rest/v1/todos", headers=keyed("e30.e30.e30"))
    assert answer.status_code == 401
    assert answer.json()["code"].startswith("PGRST")


async def test_preflight(http: httpx.AsyncClient) -> None:
    """A browser's question is answered without a key, and allows what it asked for."""
    asking = {
        "origin": "http://app.test",
        "access-control-request-method": "PATCH",
        "access-control-request-headers": "apikey,x-client-info",
    }
    for path in ("/rest/v1/todos", "/auth/v1/token", "/storage/v1/object/a/b"):
        answer = await http.options(path, headers=asking)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "PATCH" in answer.headers["access-control-allow-methods"]
        assert "apikey,x-client-info" in answer.headers["access-control-allow-headers"]
        assert answer.content == b""


async def test_cross_origin_answers(http: httpx.AsyncClient, spec: BackendSpec) -> None:
    """Answers and refusals can be read by scripts of any origin, with the fields that SDKs need."""
    for headers in ({}, keyed(spec.secrets.anon_key)):
        answer = await http.get("/rest/v1/todos", headers={"origin": "http://app.test", **headers})
        assert answer.headers.get_list("access-control-allow-origin") == ["*"]
        exposed = answer.headers["access-control-expose-headers"].lower()
        assert {"content-range", "x-supabase-api-version"} <= set(exposed.split(", "))
    plain = await http.get("/rest/v1/todos", headers=keyed(spec.secrets.anon_key))
    assert "access-control-allow-origin" not in plain.headers


async def test_sign_up_and_own_rows(http: httpx.AsyncClient, spec: BackendSpec) -> None:
    """A user signs up, signs in and writes a row as itself: Auth's token is the Data API's caller."""
    anon = keyed(spec.secrets.anon_key)
    who = {"email": "ann@example.com", "password": "correct horse"}
    signed_up = await http.post("/auth/v1/signup", json=who, headers=anon)
    assert signed_up.status_code == 200, signed_up.text
    signed_in = await http.post("/auth/v1/token?grant_type=password", json=who, headers=anon)
    token: str = signed_in.json()["access_token"]
    as_ann = {
        "apikey": spec.secrets.anon_key,
        "authorization": f"Bearer {token}",
        "prefer": "return=representation",
    }
    made = await http.post("/rest/v1/todos", json={"id": 7, "title": "own"}, headers=as_ann)
    assert made.status_code == 201, made.text
    assert made.json()[0]["owner"] == signed_in.json()["user"]["id"]


async def test_storage(http: httpx.AsyncClient, spec: BackendSpec) -> None:
    """Objects go in with a secret key and come out by a public link without any."""
    secret = keyed(spec.secrets.secret_key)
    made = await http.post("/storage/v1/bucket", json={"name": "pics", "public": True}, headers=secret)
    assert made.status_code == 200, made.text
    body = b"x" * 3_000_000
    put = await http.post("/storage/v1/object/pics/a%20b.txt", content=body, headers=secret)
    assert put.status_code == 200, put.text
    got = await http.get("/storage/v1/object/public/pics/a%20b.txt")
    assert (got.status_code, got.content) == (200, body)
    without = await http.get("/storage/v1/bucket")
    assert without.json()["message"] == "Invalid Compact JWS"


async def test_disabled_storage(daemon: Daemon, spec: BackendSpec, http: httpx.AsyncClient) -> None:
    """What config.toml switches off is not there."""
    off = msgspec.structs.replace(spec.settings, storage=StorageSettings(enabled=False))
    await daemon.do(Attach, msgspec.structs.replace(spec, settings=off))
    assert (await http.get("/storage/v1/bucket", headers=keyed(spec.secrets.anon_key))).status_code == 404


async def test_upstream_asleep(daemon: Daemon, cluster: SupabaseCluster) -> None:
    """Requests to a sleeping backend ask for it once and wait until it is awake; the door never sleeps."""
    spec = make_spec(cluster.socket_path, password=PASSWORD, is_awake=False)
    await daemon.do(Attach, spec)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{spec.http_port}", timeout=20) as http:
        assert (await http.get("/health")).status_code == 200
        loop = asyncio.get_running_loop()
        ask = [
            loop.create_task(http.get("/rest/v1/todos?select=id", headers=keyed(spec.secrets.anon_key)))
            for _ in range(4)
        ]
        assert await daemon.wakes.get() == spec.backend_id
        await daemon.do(SetAwake, spec.backend_id, is_awake=True)
        for task in ask:
            assert (await task).json() == [{"id": 1}]
        await daemon.do(SetAwake, spec.backend_id, is_awake=False, failure="its disk is full")
        refused = await http.get("/rest/v1/todos", headers=keyed(spec.secrets.anon_key))
        assert refused.status_code == 503
        assert "its disk is full" in refused.text


async def test_connections_close_for_sleep(
    daemon: Daemon, spec: BackendSpec, http: httpx.AsyncClient, cluster: SupabaseCluster
) -> None:
    """Going to sleep closes what the services hold open; the next request wakes it again."""
    headers = keyed(spec.secrets.anon_key)
    assert (await http.get("/rest/v1/todos", headers=headers)).status_code == 200
    watch = await cluster.connect("supabase_admin")
    count = "select count(*) from pg_stat_activity where usename = 'authenticator'"
    assert await watch.query(count) != [["0"]]
    await daemon.do(SetAwake, spec.backend_id, is_awake=False)
    async with asyncio.timeout(20):
        while await watch.query(count) != [["0"]]:
            await asyncio.sleep(0.01)
    asking = asyncio.get_running_loop().create_task(http.get("/rest/v1/todos", headers=headers))
    assert await daemon.wakes.get() == spec.backend_id
    await daemon.do(SetAwake, spec.backend_id, is_awake=True)
    assert (await asking).status_code == 200


async def test_relisten(daemon: Daemon, spec: BackendSpec) -> None:
    """A backend moves to other ports; a port that is taken leaves it where it is."""
    other = make_spec(spec.socket_path, "b_two")
    taken = await daemon.ask(Relisten, spec.backend_id, http_port=spec.db_port, db_port=other.db_port)
    assert isinstance(taken, Failed)
    assert taken.code == "port-taken"
    await daemon.do(Relisten, spec.backend_id, http_port=other.http_port, db_port=other.db_port)
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"http://127.0.0.1:{other.http_port}/health")).status_code == 200
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://127.0.0.1:{spec.http_port}/health")
    unknown = await daemon.ask(Relisten, "b_none", http_port=1, db_port=2)
    assert isinstance(unknown, Failed)
    assert unknown.code == "unknown-backend"


async def test_detach_cuts_requests(
    daemon: Daemon, spec: BackendSpec, http: httpx.AsyncClient, cluster: SupabaseCluster
) -> None:
    """Detaching ends requests in flight and the queries behind them."""
    session = await cluster.connect()
    await session.script("create function doze() returns int language sql as 'select 1 from pg_sleep(600)'")
    asking = asyncio.get_running_loop().create_task(
        http.post("/rest/v1/rpc/doze", headers=keyed(spec.secrets.service_role_key))
    )
    watch = await cluster.connect("supabase_admin")
    busy = "select count(*) from pg_stat_activity where usename = 'authenticator' and state = 'active'"
    async with asyncio.timeout(20):
        while await watch.query(busy) != [["1"]]:
            await asyncio.sleep(0.01)
        await daemon.do(Detach, spec.backend_id)
        with pytest.raises(httpx.TransportError):
            await asking


async def test_client_leaves(spec: BackendSpec, cluster: SupabaseCluster) -> None:
    """Clients that connect, ask and leave at once wedge nothing, and their queries are cancelled."""
    head = f"GET /rest/v1/todos HTTP/1.1\r\nhost: x\r\napikey: {spec.secrets.anon_key}\r\n\r\n".encode()
    for round_number in range(60):
        _, writer = await asyncio.open_connection("127.0.0.1", spec.http_port)
        writer.write(head)
        if round_number % 3:
            await asyncio.sleep(0.001 * (round_number % 5))
        writer.transport.abort()
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{spec.http_port}", timeout=20) as http:
        answers = await asyncio.gather(
            *(http.get("/rest/v1/todos?select=id", headers=keyed(spec.secrets.anon_key)) for _ in range(12))
        )
    assert [answer.status_code for answer in answers] == [200] * 12


async def test_update_in_place(daemon: Daemon, spec: BackendSpec, http: httpx.AsyncClient) -> None:
    """Settings that change with a new spec count from the next request on."""
    headers = keyed(spec.secrets.anon_key)
    rest = msgspec.structs.replace(spec.settings.rest, schemas=("extensions",))
    changed = msgspec.structs.replace(spec, settings=msgspec.structs.replace(spec.settings, rest=rest))
    assert (await http.get("/rest/v1/todos", headers=headers)).status_code == 200
    await daemon.do(Attach, changed)
    assert (await http.get("/rest/v1/todos", headers=headers)).status_code == 404


def test_no_secret_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """A spec's text shows no secret."""
    spec = make_spec("/x")
    shown = repr(spec)
    told: dict[str, Any] = json.loads(msgspec.json.encode(spec.secrets))
    for name, secret in told.items():
        for text in secret.values() if isinstance(secret, dict) else [secret]:
            assert not isinstance(text, str) or len(text) < 8 or text not in shown, name
