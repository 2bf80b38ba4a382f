"""Copy a template's data directory. The manifest says what is in it, so nothing is listed or asked for.

Plain reads and writes are as fast as any copying call for files of this size; blocks are shared (reflink)
where the disk can and a file is large enough to be worth it.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from toft.engine.template import Manifest, Template, read_manifest
from toft.errors.backend import DiskFull
from toft.host.files import copy_bytes, remove_tree, share_blocks

_WORTH_SHARING = 64 * 1024
_READ = os.O_RDONLY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def clone(template: Template, dest: Path, owner_uid: int | None = None) -> None:
    """Make `dest`, a data directory like the template's, owned by `owner_uid`. `dest` must not exist.

    It appears whole or not at all. Raises DiskFull.
    """
    manifest = read_manifest(template)
    partial = dest.with_name(f".{dest.name}.cloning")
    remove_tree(partial)
    try:
        _copy(manifest, template.path, partial, owner_uid)
        partial.rename(dest)
    except BaseException as error:
        remove_tree(partial)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(path=str(dest.parent)) from None
        raise


def _copy(manifest: Manifest, source: Path, target: Path, owner: int | None) -> None:
    target.mkdir(mode=0o700)
    from_fd = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    to_fd = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in manifest.directories:
            os.mkdir(name, 0o700, dir_fd=to_fd)
        can_share = True
        for name, size, used in manifest.files:
            to = os.open(name, _NEW, 0o600, dir_fd=to_fd)
            try:
                if size:
                    can_share = _fill(from_fd, to, name, size, used, can_share)
                if owner is not None:
                    os.fchown(to, owner, owner)
            finally:
                os.close(to)
        if owner is not None:
            for name in (*manifest.directories, "."):
                os.chown(name, owner, owner, dir_fd=to_fd)
    finally:
        os.close(from_fd)
        os.close(to_fd)


def _fill(from_fd: int, to: int, name: str, size: int, used: int, can_share: bool) -> bool:
    """Give `to` the content of `name`; whether sharing blocks is still worth trying."""
    source = os.open(name, _READ, dir_fd=from_fd)
    try:
        if can_share and size >= _WORTH_SHARING:
            if share_blocks(source, to):
                return True
            can_share = False
        copy_bytes(source, to, used)
        if used < size:
            os.ftruncate(to, size)
    finally:
        os.close(source)
    return can_share
