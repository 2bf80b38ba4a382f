"""What stays of a daemon that was stopped while leases lived, and for how long."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from tests.kit.fix_daemon import PATIENCE_SECONDS, RunningDaemon
from tests.kit.real_cli import RealCli

#: The caretaker with hardly any patience.
AT_ONCE = """
from toft.daemon import caretaker
caretaker.GRACE_SECONDS = 0.05
caretaker.main()
"""

#: A daemon that waits for the lock hardly at all.
HASTY = """
from toft.daemon import main
main.LOCK_SECONDS = 0.05
raise SystemExit(main.main())
"""


def caretakers(daemon: RunningDaemon) -> list[str]:
    return [line for line in daemon.processes() if "toft.daemon.caretaker" in line]


async def test_the_next_daemon_relieves_the_caretaker(own_toftd: RunningDaemon) -> None:
    """A daemon that leaves leases leaves a caretaker, who goes as soon as the next daemon is there."""
    await own_toftd.start()
    lease = await own_toftd.take()
    await own_toftd.stop()
    assert len(caretakers(own_toftd)) == 1
    await own_toftd.start()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while caretakers(own_toftd):
            await asyncio.sleep(0.01)
    assert [known["id"] for known in await own_toftd.leases()] == [lease["id"]]


async def test_leases_that_nobody_comes_back_for(own_cli: RealCli, own_toftd: RunningDaemon) -> None:
    """When no daemon comes within the grace, the caretaker ends the leases, and no process is left."""
    await own_toftd.start()
    lease = await own_toftd.take()
    await own_toftd.stop()
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE],
        env=own_cli.environment(),
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert f"lease.ended lease={lease['id']}" in own_toftd.said()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while own_toftd.processes():
            await asyncio.sleep(0.01)
    assert list((own_toftd.home / "backends").iterdir()) == []


@pytest.mark.parametrize("is_purged", [True, False])
async def test_a_caretaker_makes_no_home(own_cli: RealCli, own_toftd: RunningDaemon, is_purged: bool) -> None:
    """After a purge, or where there never was a home, a caretaker that comes late makes none."""
    if is_purged:
        await own_toftd.start()
        own_toftd.keep_what_was_dear()
        await own_toftd.stop(purge=True)
    else:
        own_toftd.run.mkdir()
    before = sorted(own_toftd.root.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE],
        env=own_cli.environment(),
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert sorted(own_toftd.root.rglob("*")) == before


async def test_a_daemon_that_nobody_reaches(own_toftd: RunningDaemon) -> None:
    """A daemon whose socket was removed is named by its process, so that it can be ended."""
    await own_toftd.start()
    assert own_toftd.process is not None
    own_toftd.socket.unlink()
    own_toftd.command = [sys.executable, "-P", "-c", HASTY]
    process = own_toftd.spawn()
    _, said = await asyncio.to_thread(process.communicate, timeout=PATIENCE_SECONDS)
    assert process.returncode == 125
    assert f"process {own_toftd.process.pid} holds its lock and does not answer" in said.decode()
    await own_toftd.kill()
    await own_toftd.start()


async def test_purge_leaves_nothing(own_cli: RealCli, own_toftd: RunningDaemon) -> None:
    """`toft daemon stop --purge` ends leases that live and removes all: processes, ports, folders, mounts."""
    await own_toftd.start()
    own_cli.write({"1_a.sql": "create table a (id int);"})
    leases = [own_cli.json("lease", "create") for _ in range(2)]
    own_toftd.keep_what_was_dear()
    assert own_cli.json("daemon", "stop", "--purge") == {"stopped": True, "leases": 0}
    await own_toftd.gone()
    own_toftd.must_have_left_nothing()
    assert not own_toftd.home.exists()
    assert not own_toftd.run.exists()
    for lease in leases:
        for port in (lease["http_port"], lease["db_port"]):
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)


async def test_purge_takes_what_was_left_for_the_next(own_cli: RealCli, own_toftd: RunningDaemon) -> None:
    """A purge after a stop, while leases wait for the next daemon, ends them too, and the caretaker."""
    await own_toftd.start()
    await own_toftd.take()
    own_toftd.keep_what_was_dear()
    await own_toftd.stop()
    assert own_cli.json("daemon", "stop", "--purge") == {"stopped": True, "leases": 0}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while own_toftd.processes():
            await asyncio.sleep(0.01)
    own_toftd.must_have_left_nothing()


async def test_collecting_rubbish(own_cli: RealCli, own_toftd: RunningDaemon) -> None:
    """`toft gc --templates` keeps only what leases need: no trash, project or unused template."""
    await own_toftd.start(TOFT_POOL_SIZE="0")
    own_cli.write({"1_a.sql": "create table a (id int);"})
    lease = own_cli.json("lease", "create")
    own_cli.write({"1_a.sql": "create table b (id int);"})
    other = own_cli.json("lease", "create")
    assert own_cli("lease", "release", other["id"]).returncode == 0
    await own_toftd.until_gone(other)
    collected = own_cli.json("gc", "--templates")
    assert collected["templates"] >= 2
    home = own_toftd.home
    assert [path.name for path in (home / "backends").iterdir()] == [lease["backend_id"]]
    assert [path.name for path in (home / "templates").iterdir()] == [lease["template"]["key"]]
    assert list((home / "trash").iterdir()) == list((home / "projects").iterdir()) == []
    assert [path.name for path in (own_toftd.run / "b").iterdir()] == [lease["backend_id"]]
    assert own_cli("psql", lease["id"], "--", "-c", "table a").returncode == 0
