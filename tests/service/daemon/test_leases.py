"""Leases over the control API: taken, shown, renewed, held, released, run out."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import httpx
import pytest

from tests.kit.fix_daemon import RunningDaemon
from toft import __version__


async def query(lease: dict[str, Any], sql: str) -> Any:
    session = await asyncpg.connect(
        host=lease["host"],
        port=lease["db_port"],
        user=lease["user"],
        password=lease["password"],
        database=lease["database"],
        ssl=False,
    )
    try:
        return await session.fetchval(sql)
    finally:
        await session.close()


async def test_a_lease_is_a_database_and_an_api(toftd: RunningDaemon) -> None:
    """A lease answers on both of its ports at once, and only to its own keys."""
    lease = await toftd.take(label="mine")
    assert await query(lease, "select current_user") == "postgres"
    async with httpx.AsyncClient(base_url=lease["url"]) as client:
        refused = await client.get("/rest/v1/nothing")
        answer = await client.get("/rest/v1/nothing", headers={"apikey": lease["anon_key"]})
    assert refused.status_code == 401
    assert answer.status_code == 404
    assert answer.json()["code"] == "PGRST205"
    assert [(known["id"], known["label"]) for known in await toftd.leases()] == [(lease["id"], "mine")]


async def test_secrets_are_told_to_who_asks_for_one_lease(toftd: RunningDaemon) -> None:
    """A lease shown by itself has its keys but not its credential; the list has neither, nor has the log."""
    lease = await toftd.take()
    [summary] = await toftd.leases()
    shown = (await toftd.ask("GET", f"/v1/leases/{lease['id']}")).json
    assert shown == {name: value for name, value in lease.items() if name not in ("credential",)} | {
        "expires_at": shown["expires_at"]
    }
    secrets = ("password", "anon_key", "service_role_key", "secret_key", "jwt_secret", "s3_secret_access_key")
    assert not set(secrets) & set(summary)
    log = toftd.log.read_text()
    assert not [name for name in (*secrets, "credential", "publishable_key") if lease[name] in log]


async def test_release_leaves_nothing(toftd: RunningDaemon) -> None:
    """A released lease's ports are closed, its processes gone, its directories away."""
    lease = await toftd.take()
    assert (await toftd.ask("DELETE", f"/v1/leases/{lease['id']}")).status == 204
    await toftd.until_gone(lease)
    for port in (lease["http_port"], lease["db_port"]):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
    assert not (toftd.home / "backends" / lease["backend_id"]).exists()
    assert not (toftd.run / "b" / lease["backend_id"]).exists()
    assert not [line for line in toftd.processes() if lease["backend_id"] in line]
    gone = await toftd.ask("GET", f"/v1/leases/{lease['id']}")
    assert (gone.status, gone.json["code"]) == (410, "TOFT-LEASE-ENDED")


async def test_unknown_lease(toftd: RunningDaemon) -> None:
    """A lease that never was is not found, by any route."""
    for method, path, message in (
        ("GET", "/v1/leases/l_0", None),
        ("DELETE", "/v1/leases/l_0", None),
        ("POST", "/v1/leases/l_0/renew", {"credential": "x", "ttl_seconds": 5}),
        ("POST", "/v1/leases/l_0/hold", {"credential": "x"}),
    ):
        answer = await toftd.ask(method, path, message)
        assert (answer.status, answer.json["code"]) == (404, "TOFT-LEASE-NOT-FOUND"), path


async def test_a_lease_runs_out(toftd: RunningDaemon) -> None:
    """A lease that nobody renews ends by itself, and whoever asks later learns why."""
    lease = await toftd.take(ttl_seconds=1)
    await toftd.until_gone(lease)
    answer = await toftd.ask("GET", f"/v1/leases/{lease['id']}")
    assert "time to live ran out" in answer.json["title"]


async def test_renewal(toftd: RunningDaemon) -> None:
    """A renewed lease outlives its first time; a wrong credential renews nothing."""
    lease = await toftd.take(ttl_seconds=1)
    path = f"/v1/leases/{lease['id']}/renew"
    wrong = await toftd.ask("POST", path, {"credential": "wrong", "ttl_seconds": 60})
    assert (wrong.status, wrong.json["code"]) == (403, "TOFT-ACCESS-CREDENTIAL")
    renewed = await toftd.ask("POST", path, {"credential": lease["credential"], "ttl_seconds": 60})
    assert renewed.json["ttl_seconds"] == 60
    await toftd.until_gone(await toftd.take(ttl_seconds=1))
    assert [known["id"] for known in await toftd.leases()] == [lease["id"]]


@pytest.mark.parametrize("ttl", [0, -5, 0.5, 10 * 365 * 86400])
async def test_ttl_bounds(toftd: RunningDaemon, ttl: float) -> None:
    """A time to live of nothing or of ten years is refused, with the bounds."""
    answer = await toftd.ask("POST", "/v1/leases", {"version": __version__, "ttl_seconds": ttl})
    assert (answer.status, answer.json["code"]) == (400, "TOFT-LEASE-TTL")
    assert "30 days" in answer.json["remedy"]


async def test_a_held_lease_ends_with_its_stream(toftd: RunningDaemon) -> None:
    """When the holder is gone, however it went, the lease is over at once."""
    lease, stream = await toftd.hold(ttl_seconds=3600)
    assert lease["held"]
    stream.close()
    await toftd.until_gone(lease)
    answer = await toftd.ask("GET", f"/v1/leases/{lease['id']}")
    assert "holder went away" in answer.json["title"]


async def test_a_held_lease_outlives_its_ttl(toftd: RunningDaemon) -> None:
    """While the stream is open the lease is renewed by that alone."""
    lease, stream = await toftd.hold(ttl_seconds=1)
    await toftd.until_gone(await toftd.take(ttl_seconds=1))
    assert [known["id"] for known in await toftd.leases()] == [lease["id"]]
    stream.close()
    await toftd.until_gone(lease)


async def test_letting_go(toftd: RunningDaemon) -> None:
    """A held lease that is let go lives on until its time is over."""
    lease, stream = await toftd.hold(ttl_seconds=3600)
    message = {"credential": lease["credential"], "ttl_seconds": 3600, "hold": False}
    renewed = await toftd.ask("POST", f"/v1/leases/{lease['id']}/renew", message)
    assert not renewed.json["held"]
    stream.close()
    await toftd.until_gone(await toftd.take(ttl_seconds=1))
    assert [known["id"] for known in await toftd.leases()] == [lease["id"]]


async def test_a_stream_is_told_the_end(toftd: RunningDaemon) -> None:
    """Whoever releases a held lease from outside, its holder hears why it ended."""
    lease, stream = await toftd.hold()
    await toftd.ask("DELETE", f"/v1/leases/{lease['id']}")
    assert await stream.until("ended") == "it was released"
    assert await stream.line() is None


async def test_a_client_that_leaves_while_it_waits_takes_nothing(toftd: RunningDaemon) -> None:
    """Gone before there was a lease: none was taken."""
    stream = await toftd.open("/v1/leases", {"version": __version__, "hold": True})
    stream.close()
    lease, kept = await toftd.hold()
    assert [known["id"] for known in await toftd.leases()] == [lease["id"]]
    kept.close()
    await toftd.until_gone(lease)


async def test_versions_must_agree(toftd: RunningDaemon) -> None:
    """A client of another version is told both, and what to do."""
    answer = await toftd.ask("POST", "/v1/leases", {"version": "0.0.0"})
    assert (answer.status, answer.json["code"]) == (409, "TOFT-DAEMON-VERSION")
    assert answer.json["facts"] == {"client": "0.0.0", "daemon": __version__}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"version": 1}', b'{"version": "%s", "nonsense": 1}' % __version__.encode()]
)
async def test_bad_messages(toftd: RunningDaemon, body: bytes) -> None:
    """What is not understood is refused with a reason."""
    answer = await toftd.ask("POST", "/v1/leases", body=body)
    assert (answer.status, answer.json["code"]) == (400, "TOFT-REQUEST-INVALID")


async def test_no_such_route(toftd: RunningDaemon) -> None:
    """Paths and methods that do not exist are refused as HTTP has it."""
    assert (await toftd.ask("GET", "/v2/leases")).status == 404
    answer = await toftd.ask("PATCH", "/v1/leases")
    assert answer.status == 405
    assert answer.headers["allow"] == "POST, GET"


async def test_wanted_ports(toftd: RunningDaemon) -> None:
    """Ports that were asked for are had, or refused when another has them."""
    first = await toftd.take()
    await toftd.ask("DELETE", f"/v1/leases/{first['id']}")
    await toftd.until_gone(first)
    http_port, db_port = first["http_port"], first["db_port"]
    lease = await toftd.take(http_port=http_port, db_port=db_port)
    assert (lease["http_port"], lease["db_port"]) == (http_port, db_port)
    assert await query(lease, "select 1") == 1
    answer = await toftd.ask("POST", "/v1/leases", {"version": __version__, "http_port": http_port})
    assert (answer.status, answer.json["code"]) == (409, "TOFT-BACKEND-PORT-TAKEN")
    assert answer.json["facts"] == {"port": http_port}
    another = await toftd.take()
    assert await query(another, "select 1") == 1


async def test_the_ledger_tells_the_story(toftd: RunningDaemon) -> None:
    """Taking and ending are in the ledger, in order, and its chain is whole."""
    from toft.store.ledger import Entry, find_break

    lease = await toftd.take(ttl_seconds=60)
    await toftd.ask("POST", f"/v1/leases/{lease['id']}/renew", {"ttl_seconds": 90})
    await toftd.ask("DELETE", f"/v1/leases/{lease['id']}")
    await toftd.until_gone(lease)
    rows = toftd.rows("SELECT seq, at, kind, subject, facts, seal FROM ledger ORDER BY seq")
    entries = [Entry(*row) for row in rows]
    assert [entry.kind for entry in entries if entry.subject == lease["id"]] == [
        "lease.taken",
        "lease.renewed",
        "lease.ended",
    ]
    assert find_break(entries) is None
