"""The pool: hand-over, many at once, limits."""

from __future__ import annotations

import asyncio

import asyncpg
import httpx

from tests.kit.fix_daemon import PATIENCE_SECONDS, RunningDaemon
from toft import __version__


async def test_a_second_lease_comes_from_the_pool(own_toftd: RunningDaemon) -> None:
    """After the first lease of a template another one stands ready."""
    await own_toftd.start(TOFT_POOL_SIZE="1", TOFT_POOL_CLONED="1")
    first = await own_toftd.take()
    await own_toftd.event("backend.ready", count=2)
    second = await own_toftd.take()
    assert first["template"]["key"] == second["template"]["key"]
    assert f"lease.taken lease={second['id']} backend={second['backend_id']} " in own_toftd.said()
    [line] = [line for line in own_toftd.said().splitlines() if f"lease={second['id']}" in line]
    assert "was_pooled=True" in line


async def test_one_from_the_shelf_has_its_services_ready(own_toftd: RunningDaemon) -> None:
    """The Data API of a backend that nobody had yet is connected already; the first request uses that."""
    await own_toftd.start(TOFT_POOL_SIZE="1", TOFT_POOL_CLONED="0")
    first = await own_toftd.take()
    await own_toftd.event("backend.ready", count=2)
    lease = await own_toftd.take()
    assert lease["template"]["key"] == first["template"]["key"]
    session = await asyncpg.connect(
        host="127.0.0.1",
        port=lease["db_port"],
        user="postgres",
        password=lease["password"],
        database="postgres",
        ssl=False,
    )
    services = "select pid, query from pg_stat_activity where usename = 'authenticator' and state = 'idle'"
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (ready := await session.fetch(services)) or "obj_description" not in ready[0]["query"]:
                await asyncio.sleep(0.01)  # the last question of what makes it ready
        async with httpx.AsyncClient() as client:
            answer = await client.get(f"{lease['url']}/rest/v1/", headers={"apikey": lease["anon_key"]})
        assert answer.status_code == 200
        assert [pid for pid, _ in await session.fetch(services)] == [pid for pid, _ in ready]
    finally:
        await session.close()


async def test_without_a_pool(own_toftd: RunningDaemon) -> None:
    """A pool of nothing is filled with nothing, and leases are still had."""
    await own_toftd.start(TOFT_POOL_SIZE="0", TOFT_POOL_CLONED="0")
    lease = await own_toftd.take()
    await own_toftd.take()
    metrics = await own_toftd.metrics()
    assert metrics["gauges"]["backends"] == 2
    assert metrics["pools"][lease["template"]["key"]]["ready"] == 0


async def test_fifty_at_once(own_toftd: RunningDaemon) -> None:
    """Fifty callers at once get fifty backends: no port, key or cluster twice, each with its own data."""
    await own_toftd.start(TOFT_POOL_SIZE="2", TOFT_POOL_CLONED="2")
    leases = await asyncio.gather(*(own_toftd.take() for _ in range(50)))
    for name in (
        "id",
        "backend_id",
        "http_port",
        "db_port",
        "password",
        "jwt_secret",
        "anon_key",
        "credential",
    ):
        assert len({lease[name] for lease in leases}) == 50, name
    assert not {lease["http_port"] for lease in leases} & {lease["db_port"] for lease in leases}

    async def write_and_count(number: int) -> int:
        lease = leases[number]
        session = await asyncpg.connect(
            host="127.0.0.1",
            port=lease["db_port"],
            user="postgres",
            password=lease["password"],
            database="postgres",
            ssl=False,
        )
        try:
            await session.execute(f"create table only_{number} (id int)")
            return await session.fetchval("select count(*) from pg_tables where tablename like 'only_%'")
        finally:
            await session.close()

    assert await asyncio.gather(*map(write_and_count, range(50))) == [1] * 50
    answers = await asyncio.gather(
        *(own_toftd.ask("DELETE", f"/v1/leases/{lease['id']}") for lease in leases)
    )
    assert {answer.status for answer in answers} == {204}
    await own_toftd.none_leased()


async def test_callers_that_come_and_go(own_toftd: RunningDaemon) -> None:
    """Clients that connect and hang up in every moment leave no backend taken."""
    await own_toftd.start(TOFT_POOL_SIZE="2")
    await own_toftd.take()

    async def come_and_go(seconds: float) -> None:
        stream = await own_toftd.open("/v1/leases", {"version": __version__, "hold": True})
        await asyncio.sleep(seconds)
        stream.close()

    for turn in range(5):
        await asyncio.gather(*(come_and_go(0.004 * number * turn) for number in range(8)))
    lease, stream = await own_toftd.hold()
    assert len(await own_toftd.leases()) <= 2 + 1
    stream.close()
    await own_toftd.until_gone(lease)
    async with asyncio.timeout(30):
        while len(await own_toftd.leases()) > 1:
            await asyncio.sleep(0.02)


async def test_the_limit(own_toftd: RunningDaemon) -> None:
    """Beyond the limit a lease is refused; ready ones of the pool count, but give way."""
    await own_toftd.start(TOFT_MAX_BACKENDS="2", TOFT_POOL_SIZE="2", TOFT_POOL_CLONED="2")
    leases = [await own_toftd.take() for _ in range(2)]
    answer = await own_toftd.ask("POST", "/v1/leases", {"version": __version__})
    assert (answer.status, answer.json["code"]) == (503, "TOFT-BACKEND-LIMIT")
    await own_toftd.ask("DELETE", f"/v1/leases/{leases[0]['id']}")
    assert (await own_toftd.take())["id"]


async def test_a_pooled_backend_that_dies_is_replaced(own_toftd: RunningDaemon) -> None:
    """A ready backend whose postmaster ends is thrown away and never handed out."""
    import os
    import signal

    await own_toftd.start(TOFT_POOL_SIZE="1")
    await own_toftd.take()
    await own_toftd.event("backend.ready", count=2)
    [(victim, pid)] = own_toftd.rows("SELECT id, pid FROM backend WHERE NOT is_leased")
    os.kill(pid, signal.SIGKILL)
    await own_toftd.event(f"backend.gone backend={victim}")
    lease = await own_toftd.take()
    assert lease["backend_id"] != victim


async def test_cloned_directories_are_started_when_somebody_waits(own_toftd: RunningDaemon) -> None:
    """A pool of directories alone: a lease starts one of them instead of cloning."""
    await own_toftd.start(TOFT_POOL_SIZE="0", TOFT_POOL_CLONED="2")
    first = await own_toftd.take()
    async with asyncio.timeout(30):
        while (await own_toftd.metrics())["pools"][first["template"]["key"]]["cloned"] < 2:
            await asyncio.sleep(0.02)
    at_hand = {name for (name,) in own_toftd.rows("SELECT id FROM backend WHERE wish = 'cloned'")}
    lease = await own_toftd.take()
    assert lease["backend_id"] in at_hand


async def test_a_damaged_template_is_made_anew(own_toftd: RunningDaemon) -> None:
    """A template whose files were lost fails one lease, and the next makes it again."""
    import shutil

    await own_toftd.start(TOFT_POOL_SIZE="0")
    lease = await own_toftd.take()
    own_toftd.keep_what_was_dear()
    shutil.rmtree(own_toftd.home / "templates" / lease["template"]["key"])
    answer = await own_toftd.ask("POST", "/v1/leases", {"version": __version__})
    assert answer.json["code"] == "TOFT-ENGINE-TEMPLATE"
    again = await own_toftd.take()
    assert again["template"] == {"key": lease["template"]["key"], "was_cached": False, "applied": 0}


async def test_changed_bytes_of_a_template_are_seen(own_toftd: RunningDaemon) -> None:
    """A pack that the disk has changed fails one lease, and the next makes it again."""
    await own_toftd.start(TOFT_POOL_SIZE="0", TOFT_POOL_CLONED="0")
    lease = await own_toftd.take()
    own_toftd.keep_what_was_dear()
    await own_toftd.ask("DELETE", f"/v1/leases/{lease['id']}")
    await own_toftd.stop()
    pack = own_toftd.home / "templates" / lease["template"]["key"] / "pgdata.pack"
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 1
    pack.unlink()
    pack.write_bytes(content)
    await own_toftd.start(TOFT_POOL_SIZE="0", TOFT_POOL_CLONED="0")
    answer = await own_toftd.ask("POST", "/v1/leases", {"version": __version__})
    assert answer.json["code"] == "TOFT-ENGINE-TEMPLATE"
    assert "not those that were written" in answer.json["title"]
    again = await own_toftd.take()
    assert again["template"] == {"key": lease["template"]["key"], "was_cached": False, "applied": 0}
