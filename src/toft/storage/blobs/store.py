"""What a store of bytes can do. A version is written once and never changed, so readers need no locks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Protocol

import msgspec


class TooLarge(Exception):
    """More bytes came than were allowed. Nothing was kept."""


class NoRoom(Exception):
    """The disk, or the quota on it, is full. Nothing was kept."""


class Missing(Exception):
    """There are no bytes under this version."""


class Written(msgspec.Struct, frozen=True):
    """What was stored. md5: in hexadecimal, as ETags show it."""

    size: int
    md5: str


class BlobStore(Protocol):
    """Bytes under version names."""

    async def write(self, version: str, chunks: AsyncIterator[bytes], limit: int) -> Written:
        """Store all chunks as `version`: completely, or not at all. Raises `TooLarge`, `NoRoom`."""
        ...

    async def read(self, version: str, start: int, end: int) -> bytes | AsyncIterator[bytes]:
        """Bytes from `start` up to `end`: at once when they are few, else as they come. Raises `Missing`."""
        ...

    async def copy(self, version: str, new_version: str) -> None:
        """The same bytes under another name. Raises `Missing`."""
        ...

    async def delete(self, versions: Iterable[str]) -> None:
        """Forget these; those that are not there do not matter."""
        ...
