"""Without root: everything runs as the user who started the daemon, and is closed to all others."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.kit.fix_daemon import RunningDaemon
from tests.service.daemon.test_leases import query as fetch

UNPRIVILEGED_UID = 65534


async def test_without_root(own_toftd: RunningDaemon) -> None:
    """A user without rights gets a lease; nobody else can read the home, the socket or the backend."""
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("needs setpriv to become another user")
        for path in (own_toftd.root, own_toftd.home, *own_toftd.home.rglob("*")):
            os.chown(path, UNPRIVILEGED_UID, UNPRIVILEGED_UID, follow_symlinks=False)
        who = f"{UNPRIVILEGED_UID}"
        become = ["setpriv", f"--reuid={who}", f"--regid={who}", "--clear-groups"]
        # the interpreter of the tests may lie in root's own folder
        become += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
        own_toftd.command = [*become, *own_toftd.command]
    await own_toftd.start()
    lease = await own_toftd.take()
    assert await fetch(lease, "select current_user") == "postgres"
    assert own_toftd.rows("SELECT uid FROM backend") == [(None,)] * len(
        own_toftd.rows("SELECT 1 FROM backend")
    )
    owner = own_toftd.home.stat().st_uid
    assert Path(f"/proc/{own_toftd.postmaster(lease)}").stat().st_uid == owner
    for path in (own_toftd.home, own_toftd.run, own_toftd.socket, own_toftd.log):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


async def test_modes_as_root(own_toftd: RunningDaemon) -> None:
    """As root each backend has a user of its own, who reads its data directory and no other's."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    await own_toftd.start(TOFT_POOL_SIZE="0")
    leases = [await own_toftd.take() for _ in range(2)]
    folders = [own_toftd.home / "backends" / lease["backend_id"] / "pgdata" for lease in leases]
    owners = {folder.stat().st_uid for folder in folders}
    assert len(owners) == 2
    assert 0 not in owners
    for folder in folders:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {path.stat().st_uid for path in folder.rglob("*") if path.exists()} == {folder.stat().st_uid}
    for path in (own_toftd.home / "state.sqlite3", own_toftd.socket, own_toftd.log):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    for path in (own_toftd.home, own_toftd.home / "backends", own_toftd.run):
        assert stat.S_IMODE(path.stat().st_mode) == 0o711, path  # may be passed, not listed
