"""Waiting for a file or folder to change, without asking again and again: the kernel's inotify."""

from __future__ import annotations

import asyncio
import ctypes
import os
from contextlib import suppress
from pathlib import Path

_IN_MODIFY = 0x2
_NAMES = 0x80 | 0x100 | 0x400  # IN_MOVED_TO, IN_CREATE, IN_DELETE_SELF
_IN_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_libc = ctypes.CDLL(None, use_errno=True)


#: Instances that nobody uses now. Closing one makes the kernel wait for all its readers, up to 40 ms.
_idle: list[int] = []


class Watch:
    """Tells of writes to one file; with `names`, of new names in a folder and of the folder's end.

    `close` it; or use it in a `with`.
    """

    def __init__(self, path: Path, *, names: bool = False) -> None:
        self._fd = _idle.pop() if _idle else _open()
        events = _NAMES if names else _IN_MODIFY
        self._mark = int(_libc.inotify_add_watch(self._fd, os.fsencode(path), events))
        if self._mark < 0:
            number = ctypes.get_errno()
            _idle.append(self._fd)
            raise OSError(number, os.strerror(number), str(path))
        self.clear()

    def fileno(self) -> int:
        """Readable when something happened since `clear`."""
        return self._fd

    def clear(self) -> None:
        """Forget what happened so far."""
        with suppress(BlockingIOError):
            os.read(self._fd, 65536)

    def close(self) -> None:
        """Stop watching. Idempotent."""
        if self._fd >= 0:
            _libc.inotify_rm_watch(self._fd, self._mark)
            _idle.append(self._fd)
            self._fd = -1

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open() -> int:
    descriptor = int(_libc.inotify_init1(_IN_NONBLOCK_CLOEXEC))
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"inotify: {os.strerror(number)}")
    return descriptor


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
