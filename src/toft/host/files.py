"""Files: written whole or not at all, copied by the cheapest sound means, removed for good."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

_FICLONE = 0x40049409
_LEAST_FREE = 2 << 20


def write_atomically(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace `path` by a file with this content; a reader sees the old one or the new one, never a part.

    Durable when it returns.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        try:
            write_all(descriptor, content)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make renames and new names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes | memoryview) -> None:
    """os.write until nothing is left."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def can_reflink(directory: Path) -> bool:
    """Whether files in this directory can share blocks, found by trying."""
    one, two = (directory / f".reflink-{os.getpid()}-{n}" for n in (1, 2))
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    source = target = -1
    try:
        source = os.open(one, flags, 0o600)
        target = os.open(two, flags, 0o600)
        os.write(source, b"x" * 4096)
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOENT):
            raise
        return False
    else:
        return True
    finally:
        for descriptor in (source, target):
            if descriptor >= 0:
                os.close(descriptor)
        one.unlink(missing_ok=True)
        two.unlink(missing_ok=True)


def remove_tree(path: Path) -> None:
    """Remove a directory or file and everything in it; fine when there is nothing.

    Symbolic links are removed, not followed. Directories that were closed are opened first.
    """
    try:
        _remove(path)
    except PermissionError:
        path.chmod(stat.S_IRWXU)
        for folder, names, _ in os.walk(path):
            for name in names:
                inner = Path(folder, name)
                if not inner.is_symlink():
                    inner.chmod(stat.S_IRWXU)
        _remove(path)


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, onexc=_pass_by_what_is_gone)
        else:
            path.unlink()


def _pass_by_what_is_gone(_function: object, _name: str, error: BaseException) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def is_disk_full(path: Path) -> bool:
    """Whether so little is left on the disk of `path` that a server would not even start."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize < _LEAST_FREE or (status.f_files > 0 and status.f_favail < 16)


def tree_bytes(path: Path) -> int:
    """What a directory takes on the disk, in bytes. Files that vanish meanwhile count as nothing."""
    total = 0
    stack = [os.fspath(path)]
    while stack:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(stack.pop()) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    total += status.st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
    return total
