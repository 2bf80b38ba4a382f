"""Files that are written and read piece by piece, in threads, without holding the event loop up."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, cast

from toft.storage.blobs.store import Missing, TooLarge, Written

#: up to here everything happens at once
SMALL_BYTES: Final = 64 * 1024
PIECE_BYTES: Final = 512 * 1024

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class OpenFile:
    """A file that threads work on, one at a time. It is closed only when no thread is at it any more.

    Otherwise a cancelled task would close it under a thread, and the thread would go on with whatever file
    has got the same number by then.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self._busy: asyncio.Future[object] | None = None

    @property
    def has_worked(self) -> bool:
        """Whether a thread was at it whose end nobody has looked at."""
        return self._busy is not None

    @property
    def is_busy(self) -> bool:
        return self._busy is not None and not self._busy.done()

    def begin(self, work: Callable[[], object]) -> None:
        """Have a thread do this while the caller goes on. Only when none is at it; `settle` tells its end."""
        self._busy = asyncio.get_running_loop().run_in_executor(None, work)

    async def run[T](self, work: Callable[[], T]) -> T:
        future = asyncio.get_running_loop().run_in_executor(None, work)
        self._busy = cast("asyncio.Future[object]", future)
        return await asyncio.shield(future)

    async def settle(self) -> None:
        """Wait for the thread that is at it. Raises what it raised."""
        if self._busy is not None:
            await asyncio.shield(self._busy)
            self._busy = None

    def close(self) -> None:
        if self._busy is not None and not self._busy.done():
            self._busy.add_done_callback(lambda future: (future.exception(), self.file.close()))
            return
        if self._busy is not None and not self._busy.cancelled():
            self._busy.exception()  # nobody asks for it any more
        self.file.close()


class Writer:
    """A file that is being written. Its bytes are held back until they turn out to be many.

    size and digest: of what is in the file already, when it is written on.
    """

    def __init__(
        self, path: Path, limit: int, *, is_durable: bool, size: int = 0, digest: Digest | None = None
    ) -> None:
        self.path = path
        self.size = size
        self.digest = digest or Digest()
        self._limit = limit
        self._is_durable = is_durable
        self._waiting = bytearray()
        self._open: OpenFile | None = None

    async def add(self, chunk: bytes) -> None:
        """Take bytes. Raises `TooLarge`, and takes nothing of the chunk then."""
        if self.size + len(chunk) > self._limit:
            raise TooLarge
        self.size += len(chunk)
        self._waiting += chunk
        if len(self._waiting) <= SMALL_BYTES:
            return
        # a thread writes and counts what has come while more comes; only when it lags behind is it waited for
        open_file = self._ensure_open()
        if open_file.is_busy:
            if len(self._waiting) < PIECE_BYTES:
                return
            await open_file.settle()
        elif open_file.has_worked:
            await open_file.settle()
        waiting, self._waiting = self._waiting, bytearray()
        open_file.begin(lambda: self._write(open_file.file, waiting))

    async def finish(self) -> Written:
        """Write what is still held back."""
        open_file = self._ensure_open()
        await open_file.settle()
        if len(self._waiting) <= SMALL_BYTES:
            self._flush(open_file.file)
        else:
            await open_file.run(lambda: self._flush(open_file.file))
        if self._is_durable:
            await open_file.run(lambda: os.fsync(open_file.file.fileno()))
        open_file.close()
        return Written(self.size, self.digest.hexdigest())

    async def salvage(self) -> None:
        """Write what is still held back although the task is being cancelled: it is little."""
        open_file = self._ensure_open()
        with suppress(OSError):
            await open_file.settle()
            self._flush(open_file.file)
            if self._is_durable:
                os.fsync(open_file.file.fileno())
        open_file.close()

    def abandon(self) -> None:
        """Forget everything."""
        if self._open is not None:
            self._open.close()
        self.path.unlink(missing_ok=True)

    def _ensure_open(self) -> OpenFile:
        if self._open is None:
            self._open = OpenFile(self.path.open("ab", buffering=0))
        return self._open

    def _flush(self, file: BinaryIO) -> None:
        waiting, self._waiting = self._waiting, bytearray()
        self._write(file, waiting)

    def _write(self, file: BinaryIO, waiting: bytearray) -> None:
        self.digest.update(waiting)
        rest = memoryview(waiting)
        while rest:
            # a quota may cut a write short before the next one fails
            rest = rest[file.write(rest) :]


class Digest:
    """MD5 of what has been written so far, and how much that is."""

    def __init__(self) -> None:
        self.size = 0
        self._md5 = hashlib.md5(usedforsecurity=False)

    def update(self, data: bytes | bytearray | memoryview) -> None:
        self._md5.update(data)
        self.size += len(data)

    def hexdigest(self) -> str:
        return self._md5.hexdigest()


def digest_file(path: Path) -> Digest:
    """Of a whole file; blocks."""
    digest = Digest()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
    return digest


async def read_pieces(file: BinaryIO, start: int, end: int) -> AsyncGenerator[bytes]:
    """The bytes of an open file from `start` up to `end`. Closes it. Raises `Missing` when it is shorter."""
    open_file = OpenFile(file)
    try:
        while start < end:
            wanted = min(PIECE_BYTES, end - start)
            piece = _read_cached(file, start, wanted)
            if piece is not None:
                await asyncio.sleep(0)  # others want their turn, too
            else:
                piece = await open_file.run(
                    lambda at=start, wanted=wanted: os.pread(file.fileno(), wanted, at)
                )
            if not piece:
                raise Missing("the file is shorter than its row says")
            start += len(piece)
            yield piece
    finally:
        open_file.close()


def _read_cached(file: BinaryIO, start: int, wanted: int) -> bytes | None:
    """What is in memory already, read at once; None when the disk would have to be waited for."""
    buffer = bytearray(wanted)
    try:
        count = os.preadv(file.fileno(), [buffer], start, os.RWF_NOWAIT)
    except OSError:  # it is not, or this file system cannot say
        return None
    return bytes(memoryview(buffer)[:count]) if count else None


def concatenate(sources: Sequence[Path], target: Path, *, is_durable: bool) -> int:
    """Write files one after the other into a new one, by the kernel; blocks. The number of bytes."""
    size = 0
    with target.open("wb", buffering=0) as out:
        for source in sources:
            with source.open("rb", buffering=0) as part:
                rest = os.fstat(part.fileno()).st_size
                while rest:
                    copied = os.copy_file_range(part.fileno(), out.fileno(), rest)
                    if not copied:
                        raise OSError(errno.EIO, "a part became shorter while it was read")
                    rest -= copied
                    size += copied
        if is_durable:
            os.fsync(out.fileno())
    return size


def replace_file(path: Path, content: bytes, *, is_durable: bool) -> None:
    """Make a small file have this content: the old or the new, never a part of it."""
    beside = path.with_name(path.name + ".new")
    with beside.open("wb", buffering=0) as file:
        file.write(content)
        if is_durable:
            os.fsync(file.fileno())
    beside.rename(path)


def unlink_all(paths: Iterable[Path]) -> None:
    """Remove files; those that are not there do not matter."""
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()


def sync_folder(folder: Path) -> None:
    """Make names in a folder survive a crash of the machine."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
