"""Checkpoints and resets: a lease's whole backend returns to an earlier point, in place."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import asyncpg
import httpx
import pytest

from tests.kit.fix_daemon import RunningDaemon
from tests.kit.leased import admin, fork, query, session
from toft.protocol.bundle import Bundle

PROJECT = Bundle(
    {
        "supabase/migrations/1_a.sql": b"create table todo (id int primary key, title text);",
        "supabase/seed.sql": b"insert into todo values (1, 'from the seed');",
    }
)


async def _do(
    toftd: RunningDaemon, lease: dict[str, Any], method: str, rest: str, message: Any = None
) -> Any:
    answer = await toftd.ask(method, f"/v1/leases/{lease['id']}{rest}", message)
    assert answer.status < 300, answer.body
    return answer.json if answer.body else None


def _api(lease: dict[str, Any]) -> httpx.AsyncClient:
    key = lease["service_role_key"]
    return httpx.AsyncClient(base_url=lease["url"], headers={"apikey": key, "authorization": f"Bearer {key}"})


async def test_restore_brings_everything_back_in_place(toftd: RunningDaemon) -> None:
    """Rows, schema, users and objects are what they were; URL, keys and passwords are what they are."""
    lease = await toftd.take()
    await query(lease, "create table note as select 'one' as body")
    async with _api(lease) as api:
        (await api.post("/storage/v1/bucket", json={"id": "files", "name": "files"})).raise_for_status()
        (await api.post("/storage/v1/object/files/a", content=b"first")).raise_for_status()
        who = {"email": "ada@example.com", "password": "long enough"}
        (await api.post("/auth/v1/signup", json=who)).raise_for_status()
        created = await _do(toftd, lease, "POST", "/checkpoints", {"name": "before"})
        assert created["name"] == "before"

        for _ in range(3):  # as often as one likes
            await query(lease, "drop table note")
            await query(lease, "create table other ()")
            await query(lease, "alter role postgres set work_mem = '5MB'")
            (await api.put("/storage/v1/object/files/a", content=b"second")).raise_for_status()
            (await api.post("/storage/v1/object/files/b", content=b"new")).raise_for_status()
            await query(lease, "truncate auth.users cascade")
            assert (await api.get("/rest/v1/note")).status_code == 404

            returned = await _do(toftd, lease, "POST", "/checkpoints/before/restore")
            assert returned["to"] == "before"
            assert await query(lease, "select body from note") == "one"
            assert await query(lease, "select to_regclass('other') is null")
            assert await query(lease, "show work_mem") != "5MB"
            assert (await api.get("/rest/v1/note")).json() == [{"body": "one"}]
            assert (await api.get("/rest/v1/other")).status_code == 404
            assert (await api.get("/storage/v1/object/files/a")).content == b"first"
            assert (await api.get("/storage/v1/object/files/b")).status_code == 400
            again = await api.post("/auth/v1/token?grant_type=password", json=who)
            assert again.status_code == 200
    shown = await _do(toftd, lease, "GET", "")
    assert {name: shown[name] for name in ("url", "password", "anon_key", "backend_id")} == {
        name: lease[name] for name in ("url", "password", "anon_key", "backend_id")
    }


async def test_reset_returns_to_migrations_and_seeds(toftd: RunningDaemon) -> None:
    """What was written is gone, what migrations and seeds made is there; again and again."""
    lease = await toftd.take(project=await toftd.put(PROJECT))
    async with _api(lease) as api:
        for _ in range(3):
            await query(lease, "insert into todo values (2, 'mine')")
            await query(lease, "alter table todo add column extra int")
            (await api.post("/storage/v1/bucket", json={"id": "files", "name": "files"})).raise_for_status()
            assert len((await api.get("/rest/v1/todo")).json()) == 2
            assert (await _do(toftd, lease, "POST", "/reset"))["to"] == "template"
            assert (await api.get("/rest/v1/todo")).json() == [{"id": 1, "title": "from the seed"}]
            assert (await api.get("/storage/v1/bucket")).json() == []


async def test_a_fork_is_reset_to_the_same_template(toftd: RunningDaemon) -> None:
    """A fork's reset leads to where its parent's would."""
    parent = await toftd.take(project=await toftd.put(PROJECT))
    await query(parent, "insert into todo values (2, 'mine')")
    [copy] = (await fork(toftd, parent))["forks"]
    assert await query(copy, "select count(*) from todo") == 2
    await _do(toftd, copy, "POST", "/reset")
    assert await query(copy, "select count(*) from todo") == 1
    assert await query(parent, "select count(*) from todo") == 2


async def test_a_checkpoint_goes_forward_again(toftd: RunningDaemon) -> None:
    """After a return to an older point, a younger one is still there; passwords open each."""
    lease = await toftd.take()
    await query(lease, "create table step as select 1 as number")
    await _do(toftd, lease, "POST", "/checkpoints", {"name": "one"})
    await query(lease, "update step set number = 2")
    await _do(toftd, lease, "POST", "/checkpoints")
    for name, number in (("one", 1), ("1", 2), ("one", 1)):
        await _do(toftd, lease, "POST", f"/checkpoints/{name}/restore")
        assert await query(lease, "select number from step") == number
    await _do(toftd, lease, "POST", "/reset")
    assert await query(lease, "select to_regclass('step') is null")
    await _do(toftd, lease, "POST", "/checkpoints/1/restore")
    assert await query(lease, "select number from step") == 2


async def test_the_life_of_checkpoints(toftd: RunningDaemon) -> None:
    """They are listed oldest first, deleted one by one, refused twice, and go with their lease."""
    lease = await toftd.take()
    other = await toftd.take()
    for name in ("b", "a", None):
        await _do(toftd, lease, "POST", "/checkpoints", {"name": name})
    listed = (await _do(toftd, lease, "GET", "/checkpoints"))["checkpoints"]
    assert [one["name"] for one in listed] == ["b", "a", "1"]
    assert all(one["bytes"] > 1 << 20 and one["pause_ms"] > 0 for one in listed)
    assert (await _do(toftd, other, "GET", "/checkpoints"))["checkpoints"] == []
    for method, lease_id, rest, message, code in (
        ("POST", lease["id"], "/checkpoints", {"name": "a"}, "TOFT-CHECKPOINT-EXISTS"),
        ("POST", lease["id"], "/checkpoints", {"name": "a/b"}, "TOFT-REQUEST-INVALID"),
        ("POST", lease["id"], "/checkpoints", {"name": ""}, "TOFT-REQUEST-INVALID"),
        ("POST", lease["id"], "/checkpoints/none/restore", None, "TOFT-CHECKPOINT-NOT-FOUND"),
        ("DELETE", lease["id"], "/checkpoints/none", None, "TOFT-CHECKPOINT-NOT-FOUND"),
        ("POST", other["id"], "/checkpoints/a/restore", None, "TOFT-CHECKPOINT-NOT-FOUND"),
        ("POST", "l_0", "/reset", None, "TOFT-LEASE-NOT-FOUND"),
    ):
        refused = await toftd.ask(method, f"/v1/leases/{lease_id}{rest}", message)
        assert refused.json["code"] == code, (rest, message)
    await _do(toftd, lease, "DELETE", "/checkpoints/a")
    listed = (await _do(toftd, lease, "GET", "/checkpoints"))["checkpoints"]
    assert [one["name"] for one in listed] == ["b", "1"]
    await toftd.ask("DELETE", f"/v1/leases/{lease['id']}")
    assert not list((toftd.home / "snapshots").iterdir())


async def test_sessions_end_and_new_ones_wait(toftd: RunningDaemon) -> None:
    """A session that was open is ended; who connects during a reset waits, and is served."""
    lease = await toftd.take()
    async with session(lease) as open_one:
        resetting = asyncio.ensure_future(_do(toftd, lease, "POST", "/reset"))
        answers = await asyncio.gather(*(_ask_until_served(lease) for _ in range(4)))
        await resetting
        assert answers == [1] * 4
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, ConnectionError)):
            await open_one.fetchval("select 1")
    assert await query(lease, "select 1") == 1


async def _ask_until_served(lease: dict[str, Any]) -> Any:
    while True:
        try:
            return await query(lease, "select 1")
        except asyncpg.AdminShutdownError:
            continue  # it met the old server in its last moment
        except (asyncpg.ConnectionDoesNotExistError, ConnectionError):
            continue


async def test_many_returns_at_once(toftd: RunningDaemon) -> None:
    """Whoever asks at the same time is served one after the other, and the last one counts."""
    lease = await toftd.take()
    await query(lease, "create table step as select 1 as number")
    await _do(toftd, lease, "POST", "/checkpoints", {"name": "one"})
    await asyncio.gather(
        *(_do(toftd, lease, "POST", "/reset") for _ in range(3)),
        *(_do(toftd, lease, "POST", "/checkpoints/one/restore") for _ in range(3)),
        fork(toftd, lease),
    )
    await _do(toftd, lease, "POST", "/checkpoints/one/restore")
    assert await query(lease, "select number from step") == 1


async def test_a_broken_backend_is_mended_by_a_reset(toftd: RunningDaemon) -> None:
    """A lease whose postmaster died too often works again after a reset."""
    lease = await toftd.take()
    broken = "SELECT 1 FROM backend WHERE id = ? AND failure IS NOT NULL"
    for _ in range(3):
        before = toftd.said().count("postmaster.died")
        os.kill(toftd.postmaster(lease), signal.SIGKILL)
        await toftd.event("postmaster.died", count=before + 1)
        while not toftd.rows(broken, lease["backend_id"]):
            try:
                await query(lease, "select 1")
                break
            except (asyncpg.PostgresError, ConnectionError):
                await asyncio.sleep(0.01)
    await toftd.event("backend.broken")
    await _do(toftd, lease, "POST", "/reset")
    assert await query(lease, "select 1") == 1
    assert (await _do(toftd, lease, "GET", ""))["state"] == "active"


async def test_checkpoints_outlive_the_daemon(own_toftd: RunningDaemon) -> None:
    """The next daemon knows them, and finishes a return that the last one had begun."""
    await own_toftd.start()
    lease = await own_toftd.take(ttl_seconds=600)
    await query(lease, "create table step as select 1 as number")
    await _do(own_toftd, lease, "POST", "/checkpoints", {"name": "one"})
    await query(lease, "update step set number = 2")
    asking = asyncio.ensure_future(own_toftd.ask("POST", f"/v1/leases/{lease['id']}/checkpoints/one/restore"))
    async with asyncio.timeout(30):
        while not own_toftd.rows("SELECT 1 FROM backend WHERE swap IS NOT NULL"):
            await asyncio.sleep(0)
    await own_toftd.kill()
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError, ValueError)):
        await asking
    await own_toftd.start()
    async with asyncio.timeout(30):
        while own_toftd.rows("SELECT 1 FROM backend WHERE swap IS NOT NULL OR NOT is_primed"):
            await asyncio.sleep(0.01)
    assert await query(lease, "select number from step") == 1
    assert await query(lease, "select current_user") == "postgres"
    async with admin(own_toftd, lease) as inside:
        assert await inside.fetchval("select 1") == 1
    await _do(own_toftd, lease, "POST", "/checkpoints/one/restore")
