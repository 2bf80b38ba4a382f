"""Copies of running backends, and copies of those. Runs in a job process."""

from __future__ import annotations

import asyncio
from pathlib import Path

from toft.backends.chores import CopySnapshot, Snap
from toft.backends.identity import make_secrets
from toft.engine.capture import MOST_PAUSE_SECONDS, Captured, capture, link_objects
from toft.engine.copy import copy_data, give
from toft.errors.backend import BackendFailed
from toft.errors.checkpoint import PausedTooLong
from toft.host.files import remove_tree
from toft.host.freeze import FrozenTooLong, Gone
from toft.protocol.worker import Secrets
from toft.world import SystemClock, SystemEntropy


def snap(chore: Snap) -> Captured:
    """Copy database and objects as they are at one moment.

    Objects are written before their rows and removed after them, so those that are there while the database
    stands still are at least those that its rows speak of.
    """
    folder = chore.folder
    _make_folder(folder)

    def link() -> None:
        link_objects(chore.objects, folder / "objects")

    try:
        return asyncio.run(capture(chore.source, folder / "pgdata", None, meanwhile=link))
    except FrozenTooLong:
        raise PausedTooLong(seconds=MOST_PAUSE_SECONDS) from None
    except Gone:
        raise BackendFailed(cause="its Postgres ended while it was copied") from None


def copy_snapshot(chore: CopySnapshot) -> Secrets:
    """Make the folder, and secrets for the backend."""
    _make_folder(chore.folder)
    if chore.moves:
        for name in ("pgdata", "objects"):
            (chore.snapshot / name).rename(chore.folder / name)
        give(chore.folder / "pgdata", chore.uid)
        return make_secrets(SystemEntropy(), SystemClock())
    copy_data(chore.snapshot / "pgdata", chore.folder / "pgdata", chore.uid, check=lambda: None)
    link_objects(chore.snapshot / "objects", chore.folder / "objects")
    return make_secrets(SystemEntropy(), SystemClock())


def _make_folder(folder: Path) -> None:
    remove_tree(folder)  # what an attempt that was cut off has left
    folder.mkdir(mode=0o711)
    folder.chmod(0o711)  # a server's user passes through to `pgdata`; nobody lists it
