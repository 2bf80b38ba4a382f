"""A daemon that is killed ends nobody's work: the next one takes over what lives and cleans what does not."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.kit.fix_daemon import RunningDaemon


async def connect(lease: dict[str, Any]) -> Any:
    return await asyncpg.connect(
        host=lease["host"],
        port=lease["db_port"],
        user=lease["user"],
        password=lease["password"],
        database=lease["database"],
        ssl=False,
    )


async def test_a_killed_daemon_ends_no_session(own_toftd: RunningDaemon) -> None:
    """An open SQL session, its postmaster and its worker live through kill -9 and the next daemon's start."""
    await own_toftd.start()
    lease = await own_toftd.take()
    session = await connect(lease)
    await session.execute("create table kept (id int); insert into kept values (1)")
    postmaster, workers = own_toftd.postmaster(lease), set(own_toftd.worker_pids())
    await own_toftd.kill()
    assert await session.fetchval("select count(*) from kept") == 1
    another = await connect(lease)
    await another.close()
    await own_toftd.start()
    shown = (await own_toftd.ask("GET", f"/v1/leases/{lease['id']}")).json
    assert (shown["http_port"], shown["password"]) == (lease["http_port"], lease["password"])
    assert await session.fetchval("select count(*) from kept") == 1
    assert own_toftd.postmaster(lease) == postmaster
    assert workers & set(own_toftd.worker_pids())
    await session.close()


async def test_a_holder_comes_back(own_toftd: RunningDaemon) -> None:
    """A held lease waits for its holder, who takes it up again with the credential, and only with that."""
    await own_toftd.start()
    lease, stream = await own_toftd.hold()
    await own_toftd.kill()
    assert await stream.line() is None
    await own_toftd.start()
    path = f"/v1/leases/{lease['id']}/hold"
    refused = await own_toftd.ask("POST", path, {"credential": "wrong"})
    assert refused.status == 403
    again = await own_toftd.open(path, {"credential": lease["credential"]})
    assert (await again.until("lease"))["id"] == lease["id"]
    again.close()
    await own_toftd.until_gone(lease)


async def test_a_lease_runs_out_across_a_restart(own_toftd: RunningDaemon) -> None:
    """Time goes on while no daemon runs: what ran out meanwhile ends when the next one comes."""
    await own_toftd.start()
    lease = await own_toftd.take(ttl_seconds=1)
    await own_toftd.kill()
    await own_toftd.start()
    await own_toftd.until_gone(lease)


async def test_what_died_meanwhile_is_started_again(own_toftd: RunningDaemon) -> None:
    """A postmaster and a worker that died without a daemon come back on the same ports, with their data."""
    await own_toftd.start()
    lease = await own_toftd.take()
    session = await connect(lease)
    await session.execute("create table kept (id int); insert into kept values (1)")
    await session.close()
    await own_toftd.kill()
    os.kill(own_toftd.postmaster(lease), signal.SIGKILL)
    for pid in own_toftd.worker_pids():
        os.kill(pid, signal.SIGKILL)
    await own_toftd.start()
    await own_toftd.event("worker.started .*adopted=False", count=2)
    async with asyncio.timeout(30):
        while True:
            try:
                session = await connect(lease)
                break
            except (OSError, asyncpg.PostgresError):
                await asyncio.sleep(0.02)
    assert await session.fetchval("select count(*) from kept") == 1
    await session.close()


async def test_rubbish_is_cleared_away(own_toftd: RunningDaemon) -> None:
    """Folders, sockets and half-made templates that no record knows are gone after a start."""
    await own_toftd.start()
    lease = await own_toftd.take()
    await own_toftd.kill()
    rubbish = [
        own_toftd.home / "backends" / "b_0000000000000000",
        own_toftd.home / "templates" / ".building-x",
        own_toftd.home / "trash" / "b_1111111111111111.1",
        own_toftd.run / "b" / "b_0000000000000000",
    ]
    for path in rubbish:
        (path / "pgdata").mkdir(parents=True)
        (path / "pgdata" / "file").touch()
    await own_toftd.start()
    await own_toftd.take()
    assert not [path for path in rubbish if path.exists() and path.parent.name != "trash"]
    answer = await own_toftd.ask("POST", "/v1/gc", {})
    assert answer.status == 200
    assert not [path for path in rubbish if path.exists()]
    assert [path.name for path in (own_toftd.home / "trash").iterdir()] == []
    assert (await own_toftd.ask("GET", f"/v1/leases/{lease['id']}")).status == 200


@pytest.mark.parametrize("moment", [0.0, 0.02, 0.05, 0.1, 0.2])
async def test_killed_at_any_moment(own_toftd: RunningDaemon, moment: float) -> None:
    """Killed while backends are made and thrown away, the next daemon has all leases and nothing more."""
    await own_toftd.start(TOFT_POOL_SIZE="2", TOFT_POOL_CLONED="1")
    kept = await own_toftd.take()
    taking = [asyncio.ensure_future(own_toftd.take()) for _ in range(4)]
    ending = asyncio.ensure_future(own_toftd.take(ttl_seconds=1))
    await asyncio.sleep(moment)
    await own_toftd.kill()
    await asyncio.gather(*taking, ending, return_exceptions=True)
    await own_toftd.start()
    known = {lease["id"]: lease for lease in await own_toftd.leases()}
    assert kept["id"] in known
    for task in taking:
        if task.exception() is None:
            assert task.result()["id"] in known
    for lease in known.values():
        shown = (await own_toftd.ask("GET", f"/v1/leases/{lease['id']}")).json
        session = await connect(shown)
        assert await session.fetchval("select 1") == 1
        await session.close()
    records = {backend_id for (backend_id,) in own_toftd.rows("SELECT id FROM backend")}
    assert {path.name for path in (own_toftd.home / "backends").iterdir()} <= records


async def test_stop_leaves_leases_for_the_next(own_toftd: RunningDaemon) -> None:
    """`stop` ends the pool and what nobody needs; leased backends go on and are taken over."""
    await own_toftd.start()
    lease = await own_toftd.take()
    session = await connect(lease)
    stopped = await own_toftd.stop()
    assert stopped == {"stopped": True, "leases": 1}
    assert await session.fetchval("select 1") == 1
    assert len(list((own_toftd.home / "backends").iterdir())) == 1
    await own_toftd.start()
    assert [known["id"] for known in await own_toftd.leases()] == [lease["id"]]
    assert await session.fetchval("select 1") == 1
    await session.close()


async def test_stop_without_leases_leaves_no_process(own_toftd: RunningDaemon) -> None:
    """When nobody has anything, nothing runs after a stop; templates stay."""
    await own_toftd.start()
    lease = await own_toftd.take()
    await own_toftd.ask("DELETE", f"/v1/leases/{lease['id']}")
    assert await own_toftd.stop() == {"stopped": True, "leases": 0}
    assert own_toftd.processes() == []
    assert list((own_toftd.home / "templates").iterdir())
    assert not own_toftd.socket.exists()


async def test_sigterm_is_a_stop(own_toftd: RunningDaemon) -> None:
    """A service manager's SIGTERM ends it in order."""
    await own_toftd.start()
    await own_toftd.take()
    assert own_toftd.process is not None
    own_toftd.process.send_signal(signal.SIGTERM)
    assert await own_toftd.gone() == 0
    assert "daemon.stopped leases_left=1" in own_toftd.log.read_text()


async def test_a_second_daemon_ends_quietly(own_toftd: RunningDaemon) -> None:
    """Two daemons at once: the one that came second sees the first answer and exits with 0."""
    await own_toftd.start()
    second = own_toftd.spawn()
    _, errors = await asyncio.to_thread(second.communicate, timeout=30)
    assert (second.returncode, errors) == (0, b"")
    assert (await own_toftd.ask("GET", "/v1/hello")).status == 200


async def test_many_daemons_at_once(own_toftd: RunningDaemon) -> None:
    """Of several that are started at the same moment one serves, and none complains."""
    several = [own_toftd.spawn() for _ in range(3)]
    await own_toftd.event("daemon.adopted")
    pid = (await own_toftd.ask("GET", "/v1/hello")).json["pid"]
    for process in several:
        if process.pid == pid:
            own_toftd.process = process
            continue
        _, errors = await asyncio.to_thread(process.communicate, timeout=30)
        assert (process.returncode, errors) == (0, b"")


async def test_after_a_reboot_backends_are_discarded(own_toftd: RunningDaemon) -> None:
    """Backends are not safe against a crash of the host: after one, leases end and say so."""
    await own_toftd.start()
    lease = await own_toftd.take()
    await own_toftd.kill()
    [line] = [
        line for line in own_toftd.processes() if "postgres -D" in line and lease["backend_id"] in line
    ][:1]
    os.kill(int(line.partition(":")[0]), signal.SIGKILL)
    import sqlite3

    with sqlite3.connect(own_toftd.home / "state.sqlite3") as state:
        state.execute("UPDATE fact SET value = 'another boot' WHERE name = 'boot'")
    state.close()
    await own_toftd.start()
    answer = await own_toftd.ask("GET", f"/v1/leases/{lease['id']}")
    assert answer.status == 410
    assert "machine was restarted" in answer.json["title"]
    await own_toftd.until_gone(lease)
    assert not (own_toftd.home / "backends" / lease["backend_id"]).exists()
    assert Path(own_toftd.home / "templates").exists()
