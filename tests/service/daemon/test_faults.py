"""What breaks under a lease is mended, or said."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from typing import Any

import asyncpg
import httpx
import pytest

from tests.kit.fix_daemon import RunningDaemon
from toft import __version__


async def connect(lease: dict[str, Any]) -> Any:
    return await asyncpg.connect(
        host=lease["host"],
        port=lease["db_port"],
        user=lease["user"],
        password=lease["password"],
        database=lease["database"],
        ssl=False,
    )


async def test_a_killed_postmaster_comes_back(toftd: RunningDaemon) -> None:
    """After kill -9 of its postmaster a backend answers again, with everything that was committed."""
    lease = await toftd.take()
    session = await connect(lease)
    await session.execute("create table kept (id int); insert into kept select generate_series(1, 1000)")
    before = toftd.postmaster(lease)
    os.kill(before, signal.SIGKILL)
    await toftd.event(f"postmaster.died backend={lease['backend_id']}")
    with pytest.raises((asyncpg.PostgresError, OSError, asyncpg.InterfaceError)):
        await session.fetchval("select 1")
    session = await connect(lease)  # the connection waits until the postmaster is back
    assert await session.fetchval("select count(*) from kept") == 1000
    await session.close()
    assert toftd.postmaster(lease) != before
    kinds = [kind for (kind,) in toftd.rows("SELECT kind FROM ledger WHERE subject = ?", lease["backend_id"])]
    assert "postmaster.died" in kinds


async def test_a_postmaster_that_keeps_dying_is_given_up(toftd: RunningDaemon) -> None:
    """One that ends again and again is not started for ever: the lease says that it failed, and why."""
    lease = await toftd.take()
    for number in range(3):
        killed = toftd.postmaster(lease)
        os.kill(killed, signal.SIGKILL)
        await toftd.event(f"postmaster.died backend={lease['backend_id']} deaths={number + 1}")
        async with asyncio.timeout(30):
            while number < 2 and toftd.postmaster(lease) == killed:
                await asyncio.sleep(0.02)
    await toftd.event(f"backend.broken backend={lease['backend_id']}")
    shown = (await toftd.ask("GET", f"/v1/leases/{lease['id']}")).json
    assert shown["state"] == "failed"
    assert "ended again and again" in shown["notices"][-1]
    async with httpx.AsyncClient(base_url=lease["url"]) as client:
        answer = await client.get("/rest/v1/", headers={"apikey": lease["anon_key"]})
    assert answer.status_code in (502, 503)


async def test_a_killed_worker_is_replaced(toftd: RunningDaemon) -> None:
    """When a gateway worker dies its backends are served again, on the same ports."""
    leases = [await toftd.take() for _ in range(2)]
    started = toftd.said().count("worker.started")
    pids = toftd.worker_pids()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    await toftd.event("worker.started", count=started + 1)
    for lease in leases:
        async with asyncio.timeout(30):
            while True:
                try:
                    session = await connect(lease)
                    break
                except (OSError, asyncpg.PostgresError):
                    await asyncio.sleep(0.02)
        assert await session.fetchval("select 1") == 1
        await session.close()


async def test_a_dead_job_process_is_replaced(toftd: RunningDaemon) -> None:
    """Job processes that die take no lease with them; the next chore starts another."""
    await toftd.take()
    jobs = [line for line in toftd.processes() if "toft.backends.job" in line]
    for line in [*jobs, *_jobs_of(toftd)]:
        os.kill(int(line.partition(":")[0]), signal.SIGKILL)
    leases = await asyncio.gather(*(toftd.take() for _ in range(2)))
    assert len({lease["backend_id"] for lease in leases}) == 2


def _jobs_of(toftd: RunningDaemon) -> list[str]:
    assert toftd.process is not None
    pids = subprocess.run(
        ["pgrep", "-P", str(toftd.process.pid), "-f", "toft.backends.job"], capture_output=True, text=True
    )
    return [f"{pid}:" for pid in pids.stdout.split()]


async def test_sleep_and_wake(own_toftd: RunningDaemon) -> None:
    """An idle backend sleeps: no process is left of it. The next connection or request wakes it."""
    await own_toftd.start(TOFT_SLEEP_AFTER="1", TOFT_POOL_SIZE="0")
    lease = await own_toftd.take()
    session = await connect(lease)
    await session.execute("create table kept (id int)")
    await session.close()
    await own_toftd.event(f"backend.slept backend={lease['backend_id']}")
    assert not [line for line in own_toftd.processes() if f"backends/{lease['backend_id']}/pgdata" in line]
    session = await connect(lease)
    assert await session.fetchval("select count(*) from kept") == 0
    await session.close()
    await own_toftd.event(f"backend.slept backend={lease['backend_id']}", count=2)
    async with httpx.AsyncClient(base_url=lease["url"]) as client:
        answer = await client.get("/rest/v1/nothing", headers={"apikey": lease["anon_key"]})
    assert answer.status_code == 404
    await own_toftd.event("backend.woken", count=2)


async def test_a_sleeper_is_adopted_and_woken(own_toftd: RunningDaemon) -> None:
    """A connection that comes while no daemon runs is served when the next one has come."""
    await own_toftd.start(TOFT_SLEEP_AFTER="1", TOFT_POOL_SIZE="0")
    lease = await own_toftd.take()
    await own_toftd.event("backend.slept")
    await own_toftd.kill()
    waiting = asyncio.ensure_future(connect(lease))
    await asyncio.sleep(0)
    await own_toftd.start()
    session = await waiting
    assert await session.fetchval("select 1") == 1
    await session.close()


async def test_a_busy_backend_does_not_sleep(own_toftd: RunningDaemon) -> None:
    """An open session keeps it awake."""
    await own_toftd.start(TOFT_SLEEP_AFTER="1", TOFT_POOL_SIZE="0")
    busy, idle = await own_toftd.take(), await own_toftd.take()
    session = await connect(busy)
    await own_toftd.event(f"backend.slept backend={idle['backend_id']}")
    assert await session.fetchval("select 1") == 1
    assert busy["backend_id"] not in [
        line.rpartition("backend=")[2] for line in own_toftd.said().splitlines() if "backend.slept" in line
    ]
    await session.close()


async def test_the_disk_quota(own_toftd: RunningDaemon) -> None:
    """Beyond its quota a holder is warned on the stream; far beyond, the lease ends and says why."""
    await own_toftd.start(TOFT_DISK_QUOTA="24M", TOFT_SLEEP_AFTER="1", TOFT_POOL_SIZE="0")
    lease, stream = await own_toftd.hold()
    session = await connect(lease)
    await session.execute("create table big as select repeat('x', 100) t from generate_series(1, 100000)")
    assert "its quota of 24 MiB" in await stream.until("notice")
    with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        await session.execute("create table bigger as select a.t from big a, generate_series(1, 4)")
    assert "its quota is 24 MiB" in await stream.until("ended")
    await own_toftd.until_gone(lease)
    session.terminate()


async def test_a_port_of_another_process(toftd: RunningDaemon) -> None:
    """A wanted port that another program holds is refused by name, and nothing is taken."""
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        answer = await toftd.ask("POST", "/v1/leases", {"version": __version__, "db_port": port})
    assert (answer.status, answer.json["code"]) == (409, "TOFT-BACKEND-PORT-TAKEN")
    assert answer.json["facts"] == {"port": port}
    assert await toftd.leases() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
async def test_a_full_disk(own_toftd: RunningDaemon) -> None:
    """No space while cloning: one clear error, nothing left behind, and leases again when there is space."""
    await own_toftd.start(TOFT_POOL_SIZE="0")
    lease = await own_toftd.take()
    await own_toftd.ask("DELETE", f"/v1/leases/{lease['id']}")
    await own_toftd.none_leased()
    backends = str(own_toftd.home / "backends")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=0711", "none", backends], check=True)
    try:
        answer = await own_toftd.ask("POST", "/v1/leases", {"version": __version__})
        assert (answer.status, answer.json["code"]) == (507, "TOFT-BACKEND-DISK-FULL"), answer.body
        await own_toftd.event("backend.gone", count=2)
        assert (await own_toftd.ask("POST", "/v1/gc", {})).status == 200
        assert list((own_toftd.home / "backends").iterdir()) == []
    finally:
        subprocess.run(["umount", backends], check=True)
    assert (await own_toftd.take())["id"]


async def test_a_home_that_cannot_be_written(own_toftd: RunningDaemon) -> None:
    """A home on a read-only disk ends the daemon with one line that says so."""
    await own_toftd.start()
    own_toftd.environ["TOFT_HOME"] = "/proc/toft"
    process = own_toftd.spawn()
    _, errors = await asyncio.to_thread(process.communicate, timeout=30)
    del own_toftd.environ["TOFT_HOME"]
    assert process.returncode == 125
    [line] = errors.decode().splitlines()
    assert line.startswith("error: the Toft home /proc/toft")
