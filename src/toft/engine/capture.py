"""A copy of a running cluster as it is at one moment, complete as after a kill -9.

A copy of files that are being written is no cluster: some start by luck. So: a checkpoint, after which the
copy has little to recover; dirty pages written back where blocks will be shared, which the kernel would do
in the middle otherwise; everything stopped, files copied, everything goes on. The copy then recovers as after
any crash. No network, no replication and no setting of the server is needed.

What a crash loses the copy loses too: rows of unlogged tables, up to 32 values of a sequence, statistics.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from toft.engine.bootstrap import SUPERUSER
from toft.engine.copy import Copied, copy_data, flush
from toft.host.freeze import freeze
from toft.host.processes import Process
from toft.pg.connection import connect

#: A cluster never stands still for longer; a copy that would take longer is given up.
MOST_PAUSE_SECONDS = 5.0
#: From so much on it is worth writing back before blocks are shared.
_WORTH_FLUSHING = 32 << 20


class Source(msgspec.Struct, frozen=True):
    """A running cluster. head: its postmaster."""

    data_dir: Path
    socket_path: Path
    password: str
    head: Process


class Captured(msgspec.Struct, frozen=True):
    """What a capture took. pause_ms: how long the source stood still."""

    pause_ms: float
    took_ms: float
    copied: Copied


async def checkpoint(source: Source) -> str:
    """Have everything written; the first file of the write-ahead log that a recovery needs."""
    session = await connect(str(source.socket_path), SUPERUSER, source.password)
    try:
        await session.script("checkpoint")
        [[first]] = await session.query("select redo_wal_file from pg_control_checkpoint()")
    finally:
        session.close()
    return str(first)


async def capture(
    source: Source, target: Path, owner: int | None, meanwhile: Callable[[], None] | None = None
) -> Captured:
    """Copy a running cluster into the new directory `target`. `meanwhile` runs while it stands still.

    Raises `Gone`, `FrozenTooLong`, OSError, `Unreachable` or `PostgresError`, and leaves what there is in
    `target` to the caller. Blocks: for a process of its own.
    """
    began = time.monotonic()
    first_log = await checkpoint(source)
    flush(source.data_dir, _WORTH_FLUSHING)
    with freeze(source.head, MOST_PAUSE_SECONDS) as frozen:
        if meanwhile is not None:
            meanwhile()
        copied = copy_data(source.data_dir, target, owner, first_log=first_log, check=frozen.check)
        frozen.check()
    return Captured(
        pause_ms=frozen.lasted_seconds * 1000,
        took_ms=(time.monotonic() - began) * 1000,
        copied=copied,
    )


def link_objects(source: Path, target: Path) -> int:
    """Give a copy the same objects: Storage never changes one in place, so each is a hard link.

    How many there are. What is only being written is left out.
    """
    _make_like(source, target)
    count = 0
    versions = source / "objects"
    if not versions.is_dir():
        return 0
    _make_like(versions, target / "objects")
    with os.scandir(versions) as folders:
        for folder in folders:
            if not folder.is_dir(follow_symlinks=False):
                continue
            beside = target / "objects" / folder.name
            _make_like(Path(folder.path), beside)
            with os.scandir(folder.path) as entries:
                for entry in entries:
                    try:
                        os.link(entry.path, beside / entry.name, follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # deleted just now: its row is gone already
                    count += 1
    return count


def _make_like(model: Path, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    status = model.stat()
    if status.st_uid != os.geteuid():
        os.chown(folder, status.st_uid, status.st_gid)
