"""What a store of bytes can do. A version is written once and never changed, so readers need no locks.

Because versions never change, a fork of a backend may share them: what `LocalBlobs` keeps under `objects/` is
hard-linked, file by file, and each side deletes its own names only. Drafts and temporary files do change
and are never shared.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Literal, Protocol

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


class Draft(msgspec.Struct, frozen=True):
    """Bytes that come in several requests, as far as they are there, and what was noted about them."""

    size: int
    notes: bytes


class Kept(msgspec.Struct, frozen=True):
    """Something that a store holds. changed_at: seconds since 1970 by the store's clock."""

    kind: Literal["version", "draft"]
    name: str
    changed_at: float


class BlobStore(Protocol):
    """Bytes under version names, and drafts that become versions.

    Names are made of letters, digits and hyphens. One process at a time uses a store for writing.
    """

    async def write(self, version: str, chunks: AsyncIterator[bytes], limit: int) -> Written:
        """Store all chunks as `version`: completely, or not at all. Raises `TooLarge`, `NoRoom`."""
        ...

    async def read(self, version: str, start: int, end: int) -> bytes | AsyncIterator[bytes]:
        """Bytes from `start` up to `end`: at once when they are few, else as they come. Raises `Missing`."""
        ...

    async def copy(self, version: str, new_version: str) -> None:
        """The same bytes under another name. Raises `Missing`."""
        ...

    async def join(self, version: str, parts: Sequence[str]) -> int:
        """Store the bytes of other versions, one after the other, as `version`; their number.

        The parts stay. Raises `Missing`, `NoRoom`.
        """
        ...

    async def delete(self, versions: Iterable[str]) -> None:
        """Forget these; those that are not there do not matter."""
        ...

    async def note_draft(self, name: str, notes: bytes) -> None:
        """Begin a draft, or note something else about one that was begun. Raises `NoRoom`."""
        ...

    async def read_draft(self, name: str) -> Draft:
        """How far a draft has come. Raises `Missing`."""
        ...

    async def append(self, name: str, chunks: AsyncIterator[bytes], limit: int) -> int:
        """Add chunks to a draft's end; its new size. One caller at a time.

        What arrived before a failure or cancellation stays, as far as it could be written. Raises `Missing`,
        `NoRoom`, and `TooLarge` for more than `limit` bytes.
        """
        ...

    async def finish_draft(self, name: str, version: str) -> Written:
        """Make a draft's bytes a version. The draft stays until it is deleted; doing it twice is harmless.

        Raises `Missing`, `NoRoom`.
        """
        ...

    async def delete_drafts(self, names: Iterable[str]) -> None:
        """Forget these; those that are not there do not matter."""
        ...

    def survey(self) -> AsyncIterator[Kept]:
        """Everything that is held, in no order, each once."""
        ...
