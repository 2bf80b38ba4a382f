"""Forks: a running backend copied with everything in it, into leases of their own."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import asyncpg
import httpx
import pytest

from tests.kit.fix_daemon import RunningDaemon
from tests.kit.leased import admin, fork, query, session
from toft.engine.capture import MOST_PAUSE_SECONDS

#: `make soak-fork` asks for more
FORKS = int(os.environ.get("TOFT_TEST_FORKS", "25"))
WRITERS = 4

LEDGER = """
create table account (id int primary key, amount bigint not null default 0);
insert into account select number, 0 from generate_series(1, 200) as number;
create table entry (id bigserial primary key, source int, target int, note text default repeat('x', 200));
create index on entry (source, target);
create index on entry using hash (target);
create function transfer(a int, b int) returns void language sql as $$
  update account set amount = amount - 1 where id = a;
  update account set amount = amount + 1 where id = b;
  insert into entry (source, target) values (a, b);
$$;
create materialized view totals as select count(*) as entries from entry;
"""
#: What is true after each transaction, and so in each fork: the books balance, and agree with the entries.
INVARIANT = """
select (select sum(amount) from account) = 0
   and not exists (
     select from account
     left join (
       select account, sum(change) as amount from (
         select source as account, -1 as change from entry union all select target, 1 from entry
       ) as changes group by account
     ) as told on told.account = account.id
     where account.amount <> coalesce(told.amount, 0))
"""
AMCHECK = """
select count(bt_index_check(index.indexrelid, true)) from pg_index as index
join pg_class as class on class.oid = index.indexrelid
join pg_am as method on method.oid = class.relam
where method.amname = 'btree' and class.relpersistence = 'p' and class.relkind = 'i'
"""
HEAPCHECK = """
select string_agg(class.relname || ': ' || found.msg, '; ') from pg_class as class
cross join lateral verify_heapam(class.oid, check_toast => true) as found
where class.relkind in ('r', 't', 'm') and class.relpersistence = 'p'
"""


async def _write(lease: dict[str, Any], number: int, stop: asyncio.Event) -> int:
    """Book one transfer after the other until told to stop; how many."""
    count = 0
    async with session(lease) as writer:
        while not stop.is_set():
            first, second = (number * 37 + count * 11) % 200 + 1, (number * 53 + count * 7) % 200 + 1
            await writer.execute("select transfer($1, $2)", first, second)
            count += 1
    return count


async def test_every_fork_is_sound(toftd: RunningDaemon) -> None:
    """Forks that are taken while the parent is written to start, pass amcheck, and their books balance."""
    parent = await toftd.take()
    async with session(parent) as setup:
        await setup.execute(LEDGER)
    stop = asyncio.Event()
    writers = [asyncio.ensure_future(_write(parent, number, stop)) for number in range(WRITERS)]
    seen: list[int] = []
    try:
        for number in range(FORKS):
            made = await fork(toftd, parent)
            assert made["pause_ms"] < MOST_PAUSE_SECONDS * 1000
            [copy] = made["forks"]
            async with admin(toftd, copy) as inside:
                await inside.execute("create extension amcheck")
                assert await inside.fetchval(AMCHECK) > 0
                assert await inside.fetchval(HEAPCHECK) is None
                assert await inside.fetchval(INVARIANT), f"fork {number}"
                seen.append(await inside.fetchval("select count(*) from entry"))
            await toftd.ask("DELETE", f"/v1/leases/{copy['id']}")
            assert not [writer for writer in writers if writer.done()], "the parent's sessions live on"
    finally:
        stop.set()
        booked = sum(await asyncio.gather(*writers))
    assert await query(parent, INVARIANT)
    assert await query(parent, "select count(*) from entry") == booked
    assert seen == sorted(seen), "each fork is of a later moment"
    assert seen[-1] > seen[0]


async def test_a_fork_carries_everything_and_shares_nothing(toftd: RunningDaemon) -> None:
    """Rows, users, sessions, objects and settings come along; keys, passwords, ports and writes do not."""
    parent = await toftd.take()
    await query(parent, "create table note (body text)")
    await query(parent, "insert into note values ('one')")
    async with httpx.AsyncClient(base_url=parent["url"], headers=_service(parent)) as api:
        who = {"email": "ada@example.com", "password": "long enough"}
        signed_up = (await api.post("/auth/v1/signup", json=who)).raise_for_status().json()
        (await api.post("/storage/v1/bucket", json={"id": "files", "name": "files"})).raise_for_status()
        (await api.post("/storage/v1/object/files/a.txt", content=b"from the parent")).raise_for_status()
    [copy] = (await fork(toftd, parent, label="mine"))["forks"]
    assert copy["label"] == "mine"
    differs = ("id", "backend_id", "http_port", "db_port", "password", "anon_key", "service_role_key")
    differs = (*differs, "publishable_key", "secret_key", "jwt_secret", "s3_secret_access_key")
    assert not [name for name in differs if copy[name] == parent[name]]

    await query(parent, "insert into note values ('parent only')")
    await query(copy, "insert into note values ('fork only')")
    assert await query(parent, "select string_agg(body, ',' order by body) from note") == "one,parent only"
    assert await query(copy, "select string_agg(body, ',' order by body) from note") == "fork only,one"

    async with httpx.AsyncClient(base_url=copy["url"], headers=_service(copy)) as api:
        again = await api.post("/auth/v1/token?grant_type=password", json=who)
        assert again.json()["user"]["id"] == signed_up["user"]["id"]
        refreshed = await api.post(
            "/auth/v1/token?grant_type=refresh_token", json={"refresh_token": signed_up["refresh_token"]}
        )
        assert refreshed.status_code == 200, refreshed.text
        assert (await api.get("/storage/v1/object/files/a.txt")).content == b"from the parent"
        (await api.put("/storage/v1/object/files/a.txt", content=b"from the fork")).raise_for_status()
    async with httpx.AsyncClient(base_url=copy["url"]) as api:
        foreign = {"apikey": parent["service_role_key"]}
        assert (await api.get("/rest/v1/note", headers=foreign)).status_code == 401
        token = {"apikey": copy["anon_key"], "authorization": f"Bearer {signed_up['access_token']}"}
        assert (await api.get("/rest/v1/note", headers=token)).status_code == 401
    async with httpx.AsyncClient(base_url=parent["url"], headers=_service(parent)) as api:
        assert (await api.get("/storage/v1/object/files/a.txt")).content == b"from the parent"
    with pytest.raises(asyncpg.InvalidPasswordError):
        await query({**copy, "password": parent["password"]}, "select 1")
    with pytest.raises(asyncpg.InvalidPasswordError):
        async with admin(toftd, copy, secrets_of=parent):
            pass


def _service(lease: dict[str, Any]) -> dict[str, str]:
    return {"apikey": lease["service_role_key"], "authorization": f"Bearer {lease['service_role_key']}"}


async def test_several_forks_are_of_one_moment(toftd: RunningDaemon) -> None:
    """Forks asked for together are equal, have labels with numbers, and the parent stood still once."""
    parent = await toftd.take()
    await query(parent, "create table tick (id bigserial primary key)")
    stop = asyncio.Event()

    async def tick() -> None:
        async with session(parent) as writer:
            while not stop.is_set():
                await writer.execute("insert into tick default values")

    writer = asyncio.ensure_future(tick())
    try:
        made = await fork(toftd, parent, count=5, label="try")
    finally:
        stop.set()
        await writer
    assert sorted(copy["label"] for copy in made["forks"]) == [f"try-{number}" for number in range(1, 6)]
    counts = {await query(copy, "select count(*) from tick") for copy in made["forks"]}
    assert len(counts) == 1
    assert len({copy["password"] for copy in made["forks"]}) == 5
    [lease] = [known for known in await toftd.leases() if known["id"] == parent["id"]]
    assert lease["state"] == "active"
    assert not list((toftd.home / "snapshots").iterdir()), "what forks were made of is thrown away"


async def test_a_fork_of_a_fork(toftd: RunningDaemon) -> None:
    """A fork is a lease like any other: it can be forked, and outlives its parent."""
    parent = await toftd.take()
    await query(parent, "create table generation as select 1 as number")
    [child] = (await fork(toftd, parent))["forks"]
    await query(child, "update generation set number = 2")
    await toftd.ask("DELETE", f"/v1/leases/{parent['id']}")
    await toftd.until_gone(parent)
    [grandchild] = (await fork(toftd, child))["forks"]
    assert await query(grandchild, "select number from generation") == 2


async def test_a_sleeper_is_woken_to_be_forked(own_toftd: RunningDaemon) -> None:
    """A backend that sleeps can be forked as well."""
    await own_toftd.start(TOFT_SLEEP_AFTER="1")
    parent = await own_toftd.take()
    await query(parent, "create table kept as select 1 as number")
    await own_toftd.event("backend.slept")
    [copy] = (await fork(own_toftd, parent))["forks"]
    assert await query(copy, "select number from kept") == 1


async def test_what_is_not_possible_is_said(toftd: RunningDaemon) -> None:
    """A lease that is not there, counts out of range and times out of range are refused with their codes."""
    parent = await toftd.take()
    path = f"/v1/leases/{parent['id']}/fork"
    for where, message, code in (
        ("/v1/leases/l_0/fork", {}, "TOFT-LEASE-NOT-FOUND"),
        (path, {"count": 0}, "TOFT-FORK-COUNT"),
        (path, {"count": 101}, "TOFT-FORK-COUNT"),
        (path, {"count": "many"}, "TOFT-REQUEST-INVALID"),
        (path, {"ttl_seconds": 0.1}, "TOFT-LEASE-TTL"),
        (path, {"colour": "red"}, "TOFT-REQUEST-INVALID"),
    ):
        answer = await toftd.ask("POST", where, message)
        assert (answer.json["code"], answer.status >= 400) == (code, True), message
    assert len(await toftd.leases()) == 1


async def test_the_limit_of_backends_holds(own_toftd: RunningDaemon) -> None:
    """No more forks than the machine may have backends; nothing is made then."""
    await own_toftd.start(TOFT_MAX_BACKENDS="3", TOFT_POOL_SIZE="0")
    parent = await own_toftd.take()
    refused = await own_toftd.ask("POST", f"/v1/leases/{parent['id']}/fork", {"count": 3})
    assert (refused.status, refused.json["code"]) == (503, "TOFT-BACKEND-LIMIT")
    assert len((await fork(own_toftd, parent, count=2))["forks"]) == 2


async def test_a_daemon_killed_while_it_forks(own_toftd: RunningDaemon) -> None:
    """The parent goes on, and nothing is left of forks that nobody got."""
    await own_toftd.start()
    parent = await own_toftd.take(ttl_seconds=600)
    await query(parent, "create table kept as select number from generate_series(1, 1000) as number")
    for _ in range(4):
        asking = asyncio.ensure_future(
            own_toftd.ask("POST", f"/v1/leases/{parent['id']}/fork", {"count": 4, "ttl_seconds": 600})
        )
        await own_toftd.event("snapshot.taken", count=own_toftd.said().count("snapshot.taken") + 1)
        await own_toftd.kill()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError, ValueError)):
            await asking
        await own_toftd.start()
        assert await query(parent, "select count(*) from kept") == 1000
        assert [lease["id"] for lease in await own_toftd.leases()] == [parent["id"]]
        async with asyncio.timeout(30):
            while own_toftd.rows("SELECT 1 FROM backend WHERE snapshot IS NOT NULL"):
                await asyncio.sleep(0.01)
        assert not list((own_toftd.home / "snapshots").iterdir())


async def test_the_ledger_knows_the_parent(toftd: RunningDaemon) -> None:
    """Who was forked from whom stands in the ledger."""
    parent = await toftd.take()
    [copy] = (await fork(toftd, parent))["forks"]
    [(facts,)] = toftd.rows(
        "SELECT facts FROM ledger WHERE kind = 'lease.forked' AND subject = ?", copy["id"]
    )
    assert json.loads(facts) == {"parent": parent["id"]}
