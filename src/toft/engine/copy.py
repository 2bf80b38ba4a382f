"""Copies the files of a data directory: by sharing blocks where the disk can, else by the kernel's copy call.

Files that a server makes anew or that say who runs it are left out, and so is the part of the write-ahead log
that lies before the last checkpoint.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from toft.host.files import can_reflink, write_all

_FICLONE = 0x40049409
_PIECE = 1 << 20
#: Smaller files are read and written in one go.
_SMALL = 64 * 1024
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_CANNOT_SHARE = {errno.EXDEV, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY, errno.EPERM, errno.ENOSYS}
_LOG_FILE = re.compile(r"[0-9A-F]{24}")
#: Files: what belongs to one start of a server, caches, what is temporary.
_LEFT_OUT = re.compile(
    r"postmaster\.(?:pid|opts)|pg_internal\.init(?:\.\d+)?|pgsql_tmp.*|\.s\.PGSQL.*|t\d+_\d+(?:_fsm|_vm)?(?:\.\d+)?"
)
#: Directories that a server clears when it starts.
_EMPTIED = frozenset({"pg_dynshmem", "pg_notify", "pg_stat_tmp", "pgsql_tmp"})


class Copied(msgspec.Struct, frozen=True):
    """How much was copied. is_shared: large files share their blocks with the source."""

    files: int
    bytes: int
    is_shared: bool


def flush(source: Path, least: int) -> None:
    """Write back what is dirty, twice, where blocks will be shared and there is at least so much."""
    paths = [
        path for name, is_directory in _walk(source, "") if not is_directory for path in (source / name,)
    ]
    if sum(_size(path) for path in paths) < least or not can_reflink(source.parent):
        return
    for _ in range(2):  # the second time finds only what was written during the first
        for path in paths:
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)


def copy_data(
    source: Path, target: Path, owner: int | None, *, first_log: str = "", check: Callable[[], None]
) -> Copied:
    """Fill the new directory `target`, all of it owned by `owner`. `check` may raise at any time.

    first_log: the first file of the write-ahead log that is needed.
    """
    target.mkdir(mode=0o700)
    job = _Job(source, target, owner)
    try:
        for name, is_directory in _walk(source, first_log):
            if is_directory:
                os.mkdir(name, 0o700, dir_fd=job.target)
                if owner is not None:
                    os.chown(name, owner, owner, dir_fd=job.target)
            else:
                check()
                job.copy(name, check)
        if owner is not None:
            os.chown(target, owner, owner)
    finally:
        job.close()
    return Copied(files=job.files, bytes=job.bytes, is_shared=job.shared > 0)


def give(directory: Path, owner: int | None) -> None:
    """Let all of a data directory belong to this user."""
    if owner is None:
        return
    at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name, _ in _walk(directory, ""):
            os.chown(name, owner, owner, dir_fd=at)
        os.fchown(at, owner, owner)
    finally:
        os.close(at)


class _Job:
    def __init__(self, source: Path, target: Path, owner: int | None) -> None:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        self.source = os.open(source, flags)
        self.target = os.open(target, flags)
        self._owner = owner
        self._can_share = True
        self.files = 0
        self.bytes = 0
        self.shared = 0

    def copy(self, name: str, check: Callable[[], None]) -> None:
        """One file. One that vanished meanwhile (in a cluster that is not frozen) is no fault."""
        try:
            source = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.source)
        except FileNotFoundError:
            return
        target = os.open(name, _NEW, 0o600, dir_fd=self.target)
        try:
            size = os.fstat(source).st_size
            if size <= _SMALL:
                write_all(target, os.read(source, _SMALL + 1))
            elif not (self._can_share and self._share(source, target)):
                _copy_range(source, target, size, check)
            if self._owner is not None:
                os.fchown(target, self._owner, self._owner)
        finally:
            os.close(source)
            os.close(target)
        self.files += 1
        self.bytes += size

    def _share(self, source: int, target: int) -> bool:
        try:
            fcntl.ioctl(target, _FICLONE, source)
        except OSError as error:
            if error.errno not in _CANNOT_SHARE:
                raise
            self._can_share = False
            return False
        self.shared += 1
        return True

    def close(self) -> None:
        os.close(self.source)
        os.close(self.target)


def _copy_range(source: int, target: int, size: int, check: Callable[[], None]) -> None:
    done = 0
    try:
        while done < size and (count := os.copy_file_range(source, target, min(16 * _PIECE, size - done))):
            done += count
            check()
    except OSError as error:
        if error.errno not in _CANNOT_SHARE:
            raise
    while done < size and (piece := os.pread(source, _PIECE, done)):
        os.pwrite(target, piece, done)
        done += len(piece)
        check()


def _walk(directory: Path, first_log: str) -> Iterator[tuple[str, bool]]:
    """Names below, relative, each directory before what is in it; and whether it is one."""
    pending = [""]
    while pending:
        above = pending.pop()
        is_log = above == "pg_wal/"
        try:
            entries = list(os.scandir(directory / above))
        except FileNotFoundError:
            continue
        for entry in entries:
            name = above + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield name, True
                if entry.name not in _EMPTIED:
                    pending.append(name + "/")
            elif entry.is_file(follow_symlinks=False):
                is_over = is_log and _LOG_FILE.fullmatch(entry.name) and entry.name < first_log
                if not is_over and not _LEFT_OUT.fullmatch(entry.name):
                    yield name, False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
