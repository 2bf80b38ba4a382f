"""What clients send that is not right, and what databases do to requests."""

from __future__ import annotations

import asyncio

import pytest

from tests.kit.fix_rest import Api, make_api, make_caller, make_request
from tests.kit.fix_supabase import SupabaseCluster
from toft.rest.context import RestContext
from toft.rest.options import RestOptions
from toft.rest.service import RestService
from toft.tokens.caller import Caller, Refusal, TokenError, TokenFault
from toft.world import SystemClock

BAD_REQUESTS = [
    ("GET", "/clients?id=1", None, 400, "PGRST100"),
    ("GET", "/clients?select=id(", None, 400, "PGRST100"),
    ("GET", "/clients?or=()", None, 400, "PGRST100"),
    ("GET", "/clients?id=eq.x", None, 400, "22P02"),
    ("GET", "/clients?limit=-1", None, 416, "PGRST103"),
    ("GET", "/clients?projects.id=eq.1", None, 400, "PGRST108"),
    ("GET", "/clients?select=id.sum()", None, 400, "PGRST123"),
    ("GET", "/clients?select=*,projects(*)&order=projects(id)", None, 400, "PGRST118"),
    ("GET", "/a/b/c", None, 404, "PGRST125"),
    ("TRACE", "/clients", None, 405, "PGRST117"),
    ("PUT", "/rpc/add", None, 405, "PGRST101"),
    ("PUT", "/clients?name=eq.x", {"id": 1, "name": "x"}, 405, "PGRST105"),
    ("PUT", "/clients?id=eq.1&limit=1", {"id": 1, "name": "x"}, 400, "PGRST114"),
    ("POST", "/clients", b"", 400, "PGRST102"),
    ("POST", "/clients", b"{", 400, "PGRST102"),
    ("POST", "/clients", b'{"id": "\xff"}', 400, "PGRST102"),
    ("POST", "/clients", b"[" * 100_000, 400, "PGRST102"),
    ("POST", "/clients", b'{"id": 93, "name": ' + b"[" * 5000 + b"]" * 5000 + b"}", 201, None),
    ("POST", "/clients", b'{"id": 91, "name": "a", "name": "b"}', 201, None),
    ("POST", "/clients", b"id,name\n92,a,b\n", 400, "PGRST102"),
    ("POST", "/clients", b'{"id": 1e400, "name": "x"}', 400, "22P02"),
    ("POST", "/clients", b"\x00", 400, "PGRST102"),
    ("GET", '/clients?""=eq.1', None, 400, "PGRST100"),
    ("POST", "/clients", [{"id": 1}, {"name": "x"}], 400, "PGRST102"),
    ("POST", "/clients", b'{"id": 90, "name": "\\u0000"}', 400, "22P05"),
    ("POST", "/clients", {"id": 90}, 400, "23502"),
    ("POST", "/projects", {"id": 90, "client_id": 77}, 409, "23503"),
    ("GET", "/clients?name=eq.%00", None, 200, None),
    ("GET", "/clients?name=eq.%ff", None, 400, "22021"),
]  # fmt: skip


@pytest.mark.parametrize("supabase", [18], indirect=True)
async def test_bad_requests(api: Api) -> None:
    """Each has its status and code, and the next request is fine."""
    for method, target, body, status, code in BAD_REQUESTS:
        reply = await api(method, target, body)
        assert (reply.status, code and reply.code) == (status, code), (method, target, reply)
    assert (await api("GET", "/clients?id=eq.1")).status == 200


@pytest.mark.parametrize("supabase", [18], indirect=True)
async def test_profiles(api: Api) -> None:
    """Another schema is asked for by header; one that is not exposed is refused."""
    reply = await api("GET", "/clients", headers={"Accept-Profile": "public"})
    assert (reply.status, reply.headers["content-profile"]) == (200, "public")
    reply = await api("GET", "/clients", headers={"Accept-Profile": "auth"})
    assert (reply.status, reply.code) == (406, "PGRST106")
    assert reply.json["hint"] == "Only the following schemas are exposed: public, graphql_public"
    reply = await api("GET", "/clients", headers={"Accept": "image/png"})
    assert (reply.status, reply.code) == (406, "PGRST107")


@pytest.mark.parametrize("supabase", [18], indirect=True)
async def test_whoever_is_not_let_in(api: Api) -> None:
    """A token that failed is told with the right words, a wrong API key with the door's."""
    request = make_request("GET", "/clients")
    caller = make_caller("anon")
    caller.error = TokenError(TokenFault.EXPIRED, "exp")
    response = await api.service.handle(request, caller, "/clients")
    assert response.status == 401
    assert b"PGRST303" in bytes(response.body)  # pyright: ignore[reportArgumentType]
    assert (
        b"www-authenticate",
        b'Bearer error="invalid_token", error_description="JWT expired"',
    ) in response.headers
    response = await api.service.handle(request, Refusal.INVALID_API_KEY, "/clients")
    assert response.status == 401
    nobody = Caller(role="", claims={}, claims_json=b"{}", token=None)
    response = await api.service.handle(request, nobody, "/clients")
    assert b"PGRST302" in bytes(response.body)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("supabase", [18], indirect=True)
async def test_large_things(api: Api) -> None:
    """Ten thousand in a list, two thousand in a select, embeds thirty deep, numbers beyond floats."""
    many = ",".join(str(number) for number in range(10_000))
    assert len((await api("GET", f"/clients?id=in.({many})")).json) == 2
    wide = [f"a{number}:name" for number in range(2000)]
    assert len((await api("GET", f"/clients?select={','.join(wide[:1600])}&limit=1")).json[0]) == 1600
    reply = await api("GET", f"/clients?select={','.join(wide)}")
    assert (reply.status, reply.code) == (500, "54011")
    deep = "projects(" + "clients(projects(" * 15 + "id" + "))" * 15 + ")"
    assert (await api("GET", f"/clients?select={deep}&id=eq.2")).status == 200
    reply = await api(
        "POST",
        "/projects?select=data",
        b'{"id": 99, "data": 1e400}',
        headers={"Prefer": "return=representation"},
    )
    assert reply.body.startswith(b'[{"data":1000000')
    reply = await make_api_of(api, RestOptions(max_body_bytes=10))("POST", "/clients", b"x" * 11)
    assert (reply.status, reply.code) == (413, "TOFT-BODY-TOO-LARGE")
    assert reply.json["details"] == "A body may have 10 bytes."


def make_api_of(api: Api, options: RestOptions) -> Api:
    """Another service over the same pool."""
    return Api(RestService(RestContext(api.pool, SystemClock(), options)), api.pool)


@pytest.mark.parametrize("supabase", [18], indirect=True)
async def test_a_statement_that_takes_too_long(supabase: SupabaseCluster, api: Api) -> None:
    """It is cancelled by the role's timeout: 57014, 500."""
    tenant = await supabase.connect()
    await tenant.script("create function public.doze() returns void language sql as 'select pg_sleep(10)'")
    admin = await supabase.connect("supabase_admin")
    await admin.script("alter role anon set statement_timeout = '20ms'")
    reply = await api("POST", "/rpc/doze", role="anon")
    assert (reply.status, reply.code) == (500, "57014")


@pytest.mark.parametrize("supabase", [18], indirect=True)
async def test_no_connection_to_be_had(supabase: SupabaseCluster) -> None:
    """All connections busy: 504 PGRST003. All killed: the next request is fine. No database: 503."""
    tenant = await supabase.connect()
    await tenant.script("create function public.doze() returns void language sql as 'select pg_sleep(0.5)'")
    api = make_api(supabase, RestOptions(acquire_seconds=0.05), size=1)
    assert (await api("POST", "/rpc/doze")).status == 204
    replies = await asyncio.gather(*(api("POST", "/rpc/doze") for _ in range(2)))
    assert sorted(reply.status for reply in replies) == [204, 504]
    admin = await supabase.connect("supabase_admin")
    await admin.script(
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'authenticator'"
    )
    replies = [await api("POST", "/rpc/doze") for _ in range(2)]
    assert replies[-1].status == 204
    api.pool.close()


@pytest.mark.parametrize("supabase", [18], indirect=True)
async def test_a_client_that_goes_away(supabase: SupabaseCluster, api: Api) -> None:
    """What runs for it is cancelled, and its connection serves the next."""
    tenant = await supabase.connect()
    await tenant.script("create function public.doze() returns void language sql as 'select pg_sleep(30)'")
    assert (await api("GET", "/clients")).status == 200
    for _ in range(8):
        task = asyncio.ensure_future(api("POST", "/rpc/doze"))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
    reply = await api("GET", "/clients")
    assert reply.status == 200
    dozing = (
        "select count(*) from pg_stat_activity"
        " where query like '%doze%' and state = 'active' and pid <> pg_backend_pid()"
    )
    async with asyncio.timeout(15):  # half of what it would sleep; the server ends it when it hears of it
        while await tenant.query(dozing) != [["0"]]:
            await asyncio.sleep(0.05)
