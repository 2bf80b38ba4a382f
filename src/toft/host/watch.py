"""Waiting for a file to be written to, without asking again and again: the kernel's inotify."""

from __future__ import annotations

import asyncio
import ctypes
import os
from contextlib import suppress
from pathlib import Path

_IN_MODIFY = 0x2
_IN_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_libc = ctypes.CDLL(None, use_errno=True)


class Watch:
    """Counts on one file being appended to. `close` it; or use it in a `with`."""

    def __init__(self, path: Path) -> None:
        self._fd = int(_libc.inotify_init1(_IN_NONBLOCK_CLOEXEC))
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        if _libc.inotify_add_watch(self._fd, os.fsencode(path), _IN_MODIFY) < 0:
            number = ctypes.get_errno()
            os.close(self._fd)
            raise OSError(number, os.strerror(number), str(path))

    def fileno(self) -> int:
        """Readable when the file was written to since `clear`."""
        return self._fd

    def clear(self) -> None:
        """Forget what happened so far."""
        with suppress(BlockingIOError):
            os.read(self._fd, 65536)

    def close(self) -> None:
        """Stop watching. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def first_readable(*descriptors: int) -> int:
    """Wait until one of the descriptors is readable, and tell which."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[int] = loop.create_future()

    def tell(descriptor: int) -> None:
        if not ready.done():
            ready.set_result(descriptor)

    for descriptor in descriptors:
        loop.add_reader(descriptor, tell, descriptor)
    try:
        return await ready
    finally:
        for descriptor in descriptors:
            loop.remove_reader(descriptor)
