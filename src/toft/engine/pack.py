"""A data directory packed into one file, and unpacked again.

Cloning costs by the file. With everything in one file there is nothing to list, to ask or to open at the
source; each target file is created, written from a mapping of the pack and closed. Large ones are handed to
the kernel's copy call, which shares their blocks where the disk can (reflink).
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from toft.host.files import write_all

#: Files begin at multiples of this, so that their blocks can be shared.
_ALIGN = 4096
#: From this size on the kernel's copy call is not dearer than writing from the mapping.
_WORTH_SHARING = 256 * 1024
#: Zeros at a file's end are left out when they are worth the extra call.
_WORTH_TRUNCATING = 32 * 1024
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_CANNOT_SHARE = {errno.EXDEV, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EPERM}


class Index(msgspec.Struct, frozen=True):
    """What is in a pack. Directories come before what is in them; all have mode 0700, files 0600.

    files: (name, where in the pack, bytes there, size); what is beyond the bytes there is zeros.
    digest: of the whole pack (SHA-256).
    """

    directories: tuple[str, ...]
    files: tuple[tuple[str, int, int, int], ...]
    digest: str


def pack(directory: Path, target: Path) -> Index:
    """Write everything in `directory` into the new file `target`, durably."""
    names = list(_walk(directory))
    files: list[tuple[str, int, int, int]] = []
    offset = 0
    with target.open("xb", buffering=0) as out:
        os.fchmod(out.fileno(), 0o600)
        for name, is_directory in names:
            if is_directory:
                continue
            with (directory / name).open("rb") as source:
                size = os.fstat(source.fileno()).st_size
                used = _used(source.fileno(), size)
                os.lseek(out.fileno(), offset, os.SEEK_SET)
                _copy(source.fileno(), out.fileno(), used)
            files.append((name, offset, used, size))
            offset += -(-used // _ALIGN) * _ALIGN
        os.ftruncate(out.fileno(), max(offset, _ALIGN))  # an empty file could not be mapped
        os.fsync(out.fileno())
    return Index(
        directories=tuple(name for name, is_directory in names if is_directory),
        files=tuple(files),
        digest=digest(target),
    )


def digest(packed: Path) -> str:
    """The SHA-256 of a pack."""
    with packed.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpack(
    packed: Path,
    index: Index,
    target: Path,
    owner: int | None,
    patches: Sequence[tuple[int, bytes]] = (),
) -> None:
    """Fill the new directory `target`, all of it owned by `owner`.

    patches: bytes that take the place of others, by where those lie in the pack.
    """
    target.mkdir(mode=0o700)
    source = os.open(packed, os.O_RDONLY | os.O_CLOEXEC)
    to = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in index.directories:
            os.mkdir(name, 0o700, dir_fd=to)
        # Never closed by hand: the traceback of a full disk still refers to a part of it.
        content = memoryview(mmap.mmap(source, 0, prot=mmap.PROT_READ))
        for name, offset, used, size in index.files:
            file = os.open(name, _NEW, 0o600, dir_fd=to)
            try:
                if used >= _WORTH_SHARING:
                    _copy_range(source, offset, used, file, content)
                elif used:
                    write_all(file, content[offset : offset + used])
                for at, data in patches:
                    if offset <= at < offset + used:
                        os.pwrite(file, data, at - offset)
                if used < size:
                    os.ftruncate(file, size)
                if owner is not None:
                    os.fchown(file, owner, owner)
            finally:
                os.close(file)
        if owner is not None:
            for name in (*index.directories, "."):
                os.chown(name, owner, owner, dir_fd=to)
    finally:
        os.close(source)
        os.close(to)


def _copy_range(source: int, offset: int, count: int, target: int, content: memoryview) -> None:
    done = 0
    try:
        while done < count:
            done += os.copy_file_range(source, target, count - done, offset + done)
    except OSError as error:
        if error.errno not in _CANNOT_SHARE:
            raise
        write_all(target, content[offset + done : offset + count])


def _copy(source: int, target: int, count: int) -> None:
    """Append the first `count` bytes of one file to another."""
    done = 0
    while done < count:
        piece = os.pread(source, min(count - done, 1 << 20), done)
        write_all(target, piece)
        done += len(piece)


def _used(file: int, size: int) -> int:
    """The size without zeros at the end, if leaving them out is worth it."""
    end = size
    while end > 0:
        start = max(0, end - (1 << 20))
        piece = os.pread(file, end - start, start).rstrip(b"\0")
        if piece:
            end = start + len(piece)
            break
        end = start
    return end if size - end >= _WORTH_TRUNCATING else size


def _walk(directory: Path) -> Iterator[tuple[str, bool]]:
    """Names below, relative, each directory before what is in it; and whether it is one."""
    pending = [""]
    while pending:
        above = pending.pop()
        with os.scandir(directory / above) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = f"{above}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    yield name, True
                    pending.append(f"{name}/")
                elif entry.is_file(follow_symlinks=False):
                    yield name, False
                else:
                    raise OSError(errno.EINVAL, "neither a file nor a directory", str(directory / name))
