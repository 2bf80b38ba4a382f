"""Disks that are full or cannot be written to, and ports that another program has."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.kit.fix_daemon import PATIENCE_SECONDS, RunningDaemon, clear_away
from tests.kit.real_cli import RealCli, take_charge
from toft import __version__

AMPLE = 1 << 30


def mounts(*words: str) -> None:
    """Call mount; skip where this user may not."""
    done = subprocess.run(["mount", *words], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"only root, and not in every container, may mount: {done.stderr.strip()}")


async def query(lease: dict[str, Any], sql: str) -> Any:
    session = await asyncpg.connect(
        host=lease["host"], port=lease["db_port"], user="postgres", password=lease["password"], ssl=False
    )
    try:
        return await session.fetchval(sql)
    finally:
        await session.close()


class OnSmallDisk(RunningDaemon):
    """A home on a disk of its own, whose free space can be said."""

    def resize(self, size_bytes: int) -> None:
        """Give the disk this size."""
        subprocess.run(["mount", "-o", f"remount,size={size_bytes}", str(self.root)], check=True)

    def leave(self, free_bytes: int) -> None:
        """Leave so much free space."""
        status = os.statvfs(self.root)
        self.resize((status.f_blocks - status.f_bfree) * status.f_frsize + max(free_bytes, status.f_frsize))

    def must_have_left_nothing(self) -> None:
        """The disk itself is the test's."""
        assert list(self.root.iterdir()) == []
        subprocess.run(["umount", str(self.root)], check=True)
        super().must_have_left_nothing()


@pytest.fixture
async def small_disk(toftd_root: Path) -> AsyncIterator[OnSmallDisk]:
    """A daemon whose home lies on a disk of its own; its pool is empty, so each lease is a clone."""
    root = toftd_root / "own"
    root.mkdir(exist_ok=True)
    mounts("-t", "tmpfs", "-o", f"size={AMPLE},mode=711", "toft-test", str(root))
    running = OnSmallDisk(root, toftd_root / "pantry-own")
    try:
        await running.start(TOFT_POOL_SIZE="0")
        yield running
        running.resize(AMPLE)
        await running.purge()
    finally:
        clear_away(running)
        subprocess.run(["umount", "-l", str(root)], capture_output=True)


@pytest.mark.parametrize("free_bytes", [0, 100_000, 6_000_000])
async def test_disk_full_while_cloning(small_disk: OnSmallDisk, folder: Path, free_bytes: int) -> None:
    """On a full disk a lease is refused in clear words, and nothing is left of the attempt."""
    toft = RealCli(small_disk, folder)
    lease = await small_disk.take()
    assert await query(lease, "select 1") == 1
    small_disk.leave(free_bytes)
    answer = await small_disk.ask("POST", "/v1/leases", {"version": __version__})
    assert (answer.status, answer.json["code"]) == (507, "TOFT-BACKEND-DISK-FULL"), answer.body
    assert "toft gc" in answer.json["remedy"]
    error = toft.refusal("run", "--", "true")
    assert error["code"] == "TOFT-BACKEND-DISK-FULL"
    assert error["title"].startswith(f"no space left under {small_disk.home}")
    assert await query(lease, "select 1") == 1
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(small_disk.rows("SELECT id FROM backend")) > 1:
            await asyncio.sleep(0.01)
    assert [path.name for path in (small_disk.home / "backends").iterdir()] == [lease["backend_id"]]
    small_disk.resize(AMPLE)
    assert toft("run", "--", "true").returncode == 0
    assert await query(await small_disk.take(), "select 1") == 1


@pytest.mark.parametrize("free_mb", [5, 15, 30, 58])
async def test_disk_full_while_migrating(small_disk: OnSmallDisk, folder: Path, free_mb: int) -> None:
    """A disk that fills up in a clone, a start, a migration or a packing is said, and no template is left."""
    toft = RealCli(small_disk, folder)
    await small_disk.take()
    fill = "create table a as select repeat('x', 100) as text from generate_series(1, 300000);"
    toft.write({"1_a.sql": fill})
    small_disk.leave(free_mb << 20)
    before = set(os.listdir(small_disk.home / "templates"))
    error = toft.refusal("run", "--", "true")
    if error["code"] != "TOFT-BACKEND-DISK-FULL":
        assert error["title"].startswith("supabase/migrations/1_a.sql:1: ")
        assert "No space left on device (SQLSTATE 53100" in error["title"]
    assert set(os.listdir(small_disk.home / "templates")) == before
    small_disk.resize(AMPLE)
    assert toft("run", "--", "true").returncode == 0


async def test_disk_full_under_a_lease(small_disk: OnSmallDisk) -> None:
    """A tenant that fills the disk gets Postgres's own error, and goes on when there is space again."""
    lease = await small_disk.take()
    small_disk.leave(3 << 20)
    with pytest.raises(asyncpg.DiskFullError):
        await query(lease, "create table a as select repeat('x', 100) from generate_series(1, 300000)")
    small_disk.resize(AMPLE)
    assert await query(lease, "select 1") == 1
    assert (await small_disk.ask("DELETE", f"/v1/leases/{lease['id']}")).status == 204
    await small_disk.until_gone(lease)


async def test_disk_full_at_the_start(small_disk: OnSmallDisk, folder: Path) -> None:
    """A daemon that cannot start since the disk is full says so to the command that wanted it."""
    toft = RealCli(small_disk, folder)
    small_disk.keep_what_was_dear()
    await small_disk.stop()
    for path in small_disk.home.glob("state.sqlite3*"):
        path.unlink()
    small_disk.leave(0)
    error = toft.refusal("run", "--", "true")
    assert error["code"] == "TOFT-BACKEND-DISK-FULL"


@contextmanager
def read_only(folder: Path) -> Generator[None]:
    """Nothing can be written below a folder: by a mount for root, whom permissions do not stop."""
    if os.geteuid() == 0:
        mounts("--bind", str(folder), str(folder))
        try:
            mounts("-o", "remount,bind,ro", str(folder))
            yield
        finally:
            subprocess.run(["umount", str(folder)], check=True)
    else:
        modes = {path: path.stat().st_mode for path in [folder, *folder.rglob("*")] if path.is_dir()}
        for path in modes:
            path.chmod(0o500)
        try:
            yield
        finally:
            for path, mode in modes.items():
                path.chmod(mode)


@pytest.mark.parametrize(("is_used", "what"), [(False, "root"), (True, "root"), (True, "home")])
async def test_home_that_cannot_be_written(
    own_cli: RealCli, own_toftd: RunningDaemon, is_used: bool, what: str
) -> None:
    """A home on a read-only disk, new or with what an earlier daemon left, is refused with its path."""
    if is_used:
        await own_toftd.start()
        await own_toftd.stop()
    place: Path = getattr(own_toftd, what)
    before = sorted(place.rglob("*"))
    with read_only(place):
        error = own_cli.refusal("run", "--", "true")
        assert error["code"] == "TOFT-HOME-UNUSABLE"
        assert str(own_toftd.root) in error["title"]
        assert "TOFT_HOME" in error["remedy"]
        daemon = own_toftd.spawn()
        _, said = await asyncio.to_thread(daemon.communicate, timeout=PATIENCE_SECONDS)
        assert daemon.returncode == 125
        assert said.startswith(b"error: the Toft home ")
        assert said.count(b"\n") == 1
    assert sorted(place.rglob("*")) == before
    assert own_cli("run", "--", "true").returncode == 0
    assert own_cli("daemon", "stop").returncode == 0


async def test_home_that_becomes_read_only(own_cli: RealCli, own_toftd: RunningDaemon) -> None:
    """When a disk goes read-only under a living daemon, leases are refused with the cause."""
    await own_toftd.start(TOFT_POOL_SIZE="0")
    lease = await own_toftd.take()
    with read_only(own_toftd.home):
        error = own_cli.refusal("run", "--", "true")
        assert error["code"] == "TOFT-HOME-UNUSABLE"
        assert await query(lease, "select 1") == 1
    assert own_cli("run", "--", "true").returncode == 0


@pytest.mark.parametrize("is_killed", [False, True])
async def test_home_that_was_removed(own_cli: RealCli, own_toftd: RunningDaemon, is_killed: bool) -> None:
    """A home that somebody removed under its daemon is named, with what ends it; then a new one is made."""
    await own_toftd.start(TOFT_POOL_SIZE="0")
    await own_toftd.take()
    own_toftd.keep_what_was_dear()
    shutil.rmtree(own_toftd.home, ignore_errors=True)
    shutil.rmtree(own_toftd.home, ignore_errors=True)  # also what was written just then
    error = own_cli.refusal("run", "--", "true")
    assert error["code"] == "TOFT-HOME-UNUSABLE"
    assert "`toft daemon stop`" in error["title"]
    if is_killed:
        await own_toftd.kill()
    else:
        assert own_cli("daemon", "stop").returncode == 0
        await own_toftd.gone()
        assert own_toftd.processes() == []
    assert own_cli("run", "--", "true").returncode == 0
    await take_charge(own_toftd)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while [line for line in own_toftd.processes() if "/backends/" in line]:
            await asyncio.sleep(0.01)


async def test_port_lost_to_another_program(own_toftd: RunningDaemon) -> None:
    """A port that another program took while no worker had it: the lease fails and says which port it was."""
    await own_toftd.start()
    lease = await own_toftd.take()
    await own_toftd.kill()
    for pid in own_toftd.worker_pids():
        os.kill(pid, 9)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                other = socket.create_server(("127.0.0.1", lease["db_port"]))
                break
            except OSError:
                await asyncio.sleep(0.01)
    with other:
        await own_toftd.start()
        await own_toftd.event("backend.broken")
        [shown] = await own_toftd.leases()
        assert shown["state"] == "failed"
        assert shown["notices"] == [f"port {lease['db_port']} is in use by another process"]
        another = await own_toftd.take()
        assert await query(another, "select 1") == 1
