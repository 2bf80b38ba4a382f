"""Bytes as files of this machine, one per version: written beside, then renamed, so that none is partial.

Few bytes are written and read at once, on the event loop: that is quicker than handing them to a thread. Many
go through threads, piece by piece. The folder `objects/` holds the versions by their first two characters,
`tmp/` what is being written. Versions never change, so a copy, and a fork of a backend, is a hard link.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, cast

from toft.storage.blobs.store import Missing, NoRoom, TooLarge, Written

#: up to here everything happens at once
SMALL_BYTES: Final = 64 * 1024
PIECE_BYTES: Final = 512 * 1024

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class LocalBlobs:
    """Versions under one folder. is_durable: they survive a crash of the machine, at the price of waiting."""

    def __init__(self, root: Path, *, is_durable: bool = False) -> None:
        self._objects = root / "objects"
        self._tmp = root / "tmp"
        self._is_durable = is_durable
        self._known: set[str] = set()

    async def write(self, version: str, chunks: AsyncIterator[bytes], limit: int) -> Written:
        """See `BlobStore`. What arrives before a failure or cancellation is removed."""
        draft = _Draft(self._make(self._tmp) / version, limit, is_durable=self._is_durable)
        try:
            async for chunk in chunks:
                await draft.add(chunk)
            written = await draft.finish()
            draft.path.rename(self._place(version))
            if self._is_durable:
                await asyncio.to_thread(_sync_folder, self._place(version).parent)
        except BaseException as error:
            draft.abandon()
            if isinstance(error, OSError) and error.errno in _FULL:
                raise NoRoom from None
            raise
        return written

    async def read(self, version: str, start: int, end: int) -> bytes | AsyncIterator[bytes]:
        """See `BlobStore`."""
        try:
            file = self._path(version).open("rb")
        except FileNotFoundError:
            raise Missing(version) from None
        if end - start > SMALL_BYTES:
            return _read_pieces(file, start, end)
        with file:
            file.seek(start)
            return file.read(end - start)

    async def copy(self, version: str, new_version: str) -> None:
        """See `BlobStore`."""
        try:
            self._place(new_version).hardlink_to(self._path(version))
        except FileNotFoundError:
            raise Missing(version) from None

    async def delete(self, versions: Iterable[str]) -> None:
        """See `BlobStore`."""
        paths = [self._path(version) for version in versions]
        if len(paths) > 8:
            await asyncio.to_thread(_unlink_all, paths)
        else:
            _unlink_all(paths)

    def _path(self, version: str) -> Path:
        if not version or not all(character.isalnum() or character == "-" for character in version):
            # a row that a seed made may say anything here; it is no name of ours
            return self._objects / "none"
        return self._objects / version[:2] / version

    def _place(self, version: str) -> Path:
        path = self._path(version)
        self._make(path.parent)
        return path

    def _make(self, folder: Path) -> Path:
        if folder.name not in self._known:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder == self._tmp:
                # one process writes here, and it has only begun: these are from one that ended in the middle
                _unlink_all(folder.iterdir())
            self._known.add(folder.name)
        return folder


class _OpenFile:
    """A file that threads work on, one at a time. It is closed only when no thread is at it any more.

    Otherwise a cancelled task would close it under a thread, and the thread would go on with whatever file
    has got the same number by then.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self._busy: asyncio.Future[object] | None = None

    async def run[T](self, work: Callable[[], T]) -> T:
        future = asyncio.get_running_loop().run_in_executor(None, work)
        self._busy = cast("asyncio.Future[object]", future)
        return await asyncio.shield(future)

    def close(self) -> None:
        if self._busy is not None and not self._busy.done():
            self._busy.add_done_callback(lambda future: (future.exception(), self.file.close()))
        else:
            self.file.close()


class _Draft:
    """A file that is being written. Its bytes are held back until they turn out to be many."""

    def __init__(self, path: Path, limit: int, *, is_durable: bool) -> None:
        self.path = path
        self._limit = limit
        self._is_durable = is_durable
        self._size = 0
        self._digest = hashlib.md5(usedforsecurity=False)
        self._waiting = bytearray()
        self._open: _OpenFile | None = None

    async def add(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > self._limit:
            raise TooLarge
        self._waiting += chunk
        if len(self._waiting) >= PIECE_BYTES:
            open_file = self._ensure_open()
            await open_file.run(lambda: self._flush(open_file.file))

    async def finish(self) -> Written:
        open_file = self._ensure_open()
        if len(self._waiting) <= SMALL_BYTES:
            self._flush(open_file.file)
        else:
            await open_file.run(lambda: self._flush(open_file.file))
        if self._is_durable:
            await open_file.run(lambda: os.fsync(open_file.file.fileno()))
        open_file.close()
        return Written(self._size, self._digest.hexdigest())

    def abandon(self) -> None:
        if self._open is not None:
            self._open.close()
        self.path.unlink(missing_ok=True)

    def _ensure_open(self) -> _OpenFile:
        if self._open is None:
            self._open = _OpenFile(self.path.open("wb", buffering=0))
        return self._open

    def _flush(self, file: BinaryIO) -> None:
        waiting, self._waiting = self._waiting, bytearray()
        self._digest.update(waiting)
        rest = memoryview(waiting)
        while rest:
            # a quota may cut a write short before the next one fails
            rest = rest[file.write(rest) :]


async def _read_pieces(file: BinaryIO, start: int, end: int) -> AsyncGenerator[bytes]:
    open_file = _OpenFile(file)
    try:
        file.seek(start)
        while start < end:
            wanted = min(PIECE_BYTES, end - start)
            piece = await open_file.run(lambda wanted=wanted: file.read(wanted))
            if not piece:
                raise Missing("the file is shorter than its row says")
            start += len(piece)
            yield piece
    finally:
        open_file.close()


def _unlink_all(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
