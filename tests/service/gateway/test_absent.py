"""Services that are not here answer so that clients go on; explanations and GraphQL have their doors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.kit.fix_gateway import Daemon, make_spec
from tests.kit.fix_supabase import PASSWORD, SupabaseCluster, SupabaseTemplates
from toft.protocol.worker import Attach, BackendSpec, Detach


@pytest.fixture
async def cluster(supabase_templates: SupabaseTemplates) -> AsyncIterator[SupabaseCluster]:
    cluster = await supabase_templates.start(18)
    yield cluster
    await supabase_templates.stop(cluster)


@pytest.fixture
async def spec(daemon: Daemon, cluster: SupabaseCluster) -> BackendSpec:
    spec = make_spec(cluster.socket_path, password=PASSWORD)
    await daemon.do(Attach, spec)
    return spec


@pytest.fixture
async def http(spec: BackendSpec) -> AsyncIterator[httpx.AsyncClient]:
    url = f"http://127.0.0.1:{spec.http_port}"
    async with httpx.AsyncClient(
        base_url=url, timeout=20, headers={"apikey": spec.secrets.anon_key}
    ) as client:
        yield client


async def test_realtime_refuses_each_channel(spec: BackendSpec, daemon: Daemon) -> None:
    """Both versions of the protocol: beats are answered, a join is refused with the reason and closed."""
    async with connect(f"ws://127.0.0.1:{spec.http_port}/realtime/v1/websocket?apikey=x&vsn=2.0.0") as socket:
        await socket.send(json.dumps([None, "1", "phoenix", "heartbeat", {}]))
        beat = json.loads(await socket.recv())
        assert beat == [None, "1", "phoenix", "phx_reply", {"status": "ok", "response": {}}]
        await socket.send(json.dumps(["2", "2", "realtime:room", "phx_join", {"config": {}}]))
        join, ref, topic, event, payload = json.loads(await socket.recv())
        assert (join, ref, topic, event, payload["status"]) == (
            "2",
            "2",
            "realtime:room",
            "phx_reply",
            "error",
        )
        assert "TOFT-REALTIME-ABSENT" in payload["response"]["reason"]
        assert json.loads(await socket.recv()) == ["2", None, "realtime:room", "phx_close", {}]
        for noise in ("{", "[1]", b"\x00binary", '"x"', "[" * 5000):
            await socket.send(noise)
        await socket.send(
            json.dumps(
                {"topic": "realtime:x", "event": "phx_join", "payload": {}, "ref": "3", "join_ref": "3"}
            )
        )
        assert json.loads(await socket.recv())["payload"]["status"] == "error"
        assert json.loads(await socket.recv())["event"] == "phx_close"
        await socket.ping()
        # When the backend goes, so does the socket.
        await daemon.do(Detach, spec.backend_id)
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(socket.recv(), 20)


async def test_what_is_no_websocket(spec: BackendSpec, http: httpx.AsyncClient) -> None:
    """501 with a code that does not change; a handshake that is none is refused as one."""
    for path, code in (
        ("/realtime/v1", "TOFT-REALTIME-ABSENT"),
        ("/realtime/v1/api/broadcast", "TOFT-REALTIME-ABSENT"),
        ("/functions/v1/hello", "TOFT-FUNCTIONS-ABSENT"),
    ):
        reply = await http.post(path, json={}, headers={"Origin": "http://x"})
        assert (reply.status_code, reply.json()["code"]) == (501, code)
        assert set(reply.json()) == {"code", "message", "hint"}
        assert reply.headers["access-control-allow-origin"] == "*"
    asked = {"Origin": "http://x", "Access-Control-Request-Method": "POST"}
    assert (await http.options("/functions/v1/hello", headers=asked)).status_code == 200
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    assert (await http.get("/realtime/v1/websocket", headers=upgrade)).status_code == 400
    with pytest.raises(InvalidStatus):
        await connect(f"ws://127.0.0.1:{spec.http_port}/rest/v1/")


async def test_graphql(http: httpx.AsyncClient, cluster: SupabaseCluster) -> None:
    """A clear error without pg_graphql; with it, it gets query, variables and the caller's role."""
    reply = await http.post("/graphql/v1", json={"query": "{ __typename }"})
    assert (reply.status_code, reply.json()) == (
        200,
        {"errors": [{"message": "pg_graphql is not available in this backend."}]},
    )
    admin = await cluster.connect("supabase_admin")
    await admin.script(
        'create or replace function graphql_public.graphql("operationName" text default null,'
        " query text default null, variables jsonb default null, extensions jsonb default null)"
        " returns jsonb language sql as"
        " $$ select jsonb_build_object('data', array[query, variables->>'a', current_user]) $$"
    )
    reply = await http.post("/graphql/v1", json={"query": "{ x }", "variables": {"a": "b"}})
    assert reply.json() == {"data": ["{ x }", "b", "anon"]}
    assert (await http.post("/graphql/v1", json={}, headers={"apikey": "wrong"})).status_code == 401


async def test_explanations(http: httpx.AsyncClient, cluster: SupabaseCluster) -> None:
    """A refusal links to its explanation, which needs no key; a trial leaves nothing."""
    tenant = await cluster.connect()
    await tenant.script(
        "create table public.t (id int); alter table public.t enable row level security;"
        "create policy p on public.t for insert to anon with check (id < 5); grant all on public.t to anon"
    )
    reply = await http.post("/rest/v1/t", json={"id": 7})
    assert reply.status_code == 401
    link = reply.headers["toft-explain"].partition(">")[0].removeprefix("<")
    async with httpx.AsyncClient() as anybody:
        told = (await anybody.get(link)).json()
        assert told["hint"] == reply.json()["hint"]
        assert (await anybody.get(link[:-4] + "0000")).status_code == 404
    assert (await http.post("/explain/rest/v1/t", json={"id": 1})).status_code == 201
    assert await tenant.query("select count(*) from public.t") == [["0"]]
