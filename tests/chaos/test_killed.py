"""kill -9 of each process that Toft has, while a command works with its backend."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from tests.kit.fix_daemon import PATIENCE_SECONDS, RunningDaemon
from tests.kit.real_cli import ASK_SQL, RealCli, ask, read_line, take_charge

type Lease = dict[str, Any]


async def connect(lease: Lease) -> asyncpg.Connection[Any]:
    return await asyncpg.connect(
        host=lease["host"],
        port=lease["db_port"],
        user=lease["user"],
        password=lease["password"],
        database=lease["database"],
        ssl=False,
    )


async def query(lease: Lease, sql: str) -> Any:
    session = await connect(lease)
    try:
        return await session.fetchval(sql)
    finally:
        await session.close()


def cut_off(session: asyncpg.Connection[Any]) -> asyncio.Future[None]:
    """Comes true when the session loses its connection."""
    cut: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    session.add_termination_listener(lambda _: cut.set_result(None))
    return cut


async def healthy(lease: Lease) -> bool:
    """Whether its API answers from the database."""
    headers = {"apikey": lease["anon_key"]}
    async with httpx.AsyncClient(base_url=lease["url"], headers=headers, timeout=PATIENCE_SECONDS) as client:
        return (await client.get("/rest/v1/")).status_code == 200


def listener_of(port: int) -> int:
    """The process that listens on a port of the loopback."""
    wanted = f"0100007F:{port:04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    [inode] = [fields[9] for fields in lines if fields[1] == wanted and fields[3] == "0A"]
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == f"socket:[{inode}]":
                return int(link.parts[2])
        except OSError:
            continue
    raise AssertionError(f"nobody listens on {port}")


async def test_killed_cli_gives_its_lease_back(cli: RealCli, toftd: RunningDaemon) -> None:
    """kill -9 of `toft run` ends the lease: ports, processes and files go, though the command lives on."""
    with cli.started("run", "--", *ASK_SQL) as process:
        assert read_line(process).startswith("ready")
        [lease] = await toftd.leases()
        assert ask(process, "select 1") == "1"
        os.kill(process.pid, signal.SIGKILL)
        await toftd.until_gone(lease)
        assert await toftd.leases() == []
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", lease["db_port"])
        assert not (toftd.home / "backends" / lease["backend_id"]).exists()


async def test_killed_daemon_is_started_again_by_the_cli(own_cli: RealCli, own_toftd: RunningDaemon) -> None:
    """After kill -9 of the daemon under `toft run` the CLI starts another; its command notices nothing."""
    await own_toftd.start()
    with own_cli.started("run", "--", *ASK_SQL) as process:
        assert read_line(process).startswith("ready")
        [lease] = await own_toftd.leases()
        assert ask(process, "create table kept as select 7 as it") == "None"
        await own_toftd.kill()
        assert ask(process, "select it from kept") == "7"  # served without a daemon
        await own_toftd.event("lease.held")
        await take_charge(own_toftd)
        assert [(known["id"], known["held"]) for known in await own_toftd.leases()] == [(lease["id"], True)]
        assert ask(process, "select it from kept") == "7"
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0
        assert errors == "note: no supabase/ folder here: the backend is empty\n"
    await own_toftd.until_gone(lease)


async def test_killed_worker_disturbs_only_its_own(own_toftd: RunningDaemon) -> None:
    """kill -9 of a gateway worker: its backends' ports come back, another's sessions are not even cut."""
    await own_toftd.start(TOFT_WORKERS="2")
    await own_toftd.take()
    await own_toftd.event("worker.started", count=2)
    leases = [await own_toftd.take() for _ in range(3)]
    sessions = [await connect(lease) for lease in leases]
    homes = [listener_of(lease["db_port"]) for lease in leases]
    assert set(homes) == set(own_toftd.worker_pids())
    postmasters = [own_toftd.postmaster(lease) for lease in leases]
    victim = homes[0]
    cuts = [cut_off(session) for session in sessions]
    os.kill(victim, signal.SIGKILL)
    await own_toftd.event("worker.started", count=3)
    for lease, session, cut, worker in zip(leases, sessions, cuts, homes, strict=True):
        if worker == victim:
            await cut
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    try:
                        assert await query(lease, "select 1") == 1
                        break
                    except ConnectionRefusedError:
                        await asyncio.sleep(0.01)
            assert await healthy(lease)
        else:
            assert await session.fetchval("select 1") == 1
            await session.close()
    assert [own_toftd.postmaster(lease) for lease in leases] == postmasters
