"""Bytes in a bucket of any S3 service: for deployments whose disks come and go.

    <prefix>/objects/<version>            bytes that never change again
    <prefix>/drafts/<name>/notes          what is noted about an upload that comes in several requests
    <prefix>/drafts/<name>/<offset>       what one of its requests brought, by where it begins

Needs the extra `toft[s3]`: obstore speaks the protocol, signs, and tries again.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import Final

import obstore
from obstore.store import S3Store

from toft.storage.blobs.store import Draft, Kept, Missing, TooLarge, Written

#: S3 takes no smaller part than 5 MiB, but for the last
PART_BYTES: Final = 8 * 1024 * 1024
SMALL_BYTES: Final = 64 * 1024
#: parts on their way at a time: this many parts of memory for each upload
_AT_ONCE: Final = 2
_NOTES: Final = "notes"


class BucketBlobs:
    """Versions in one bucket, below the prefix that the store was made with."""

    def __init__(self, store: S3Store) -> None:
        self._store = store

    async def write(self, version: str, chunks: AsyncIterator[bytes], limit: int) -> Written:
        """See `BlobStore`. An object appears in a bucket when all of it is there, or not at all."""
        counted = _Counted(chunks, limit)
        await self._put(_place(version), counted)
        return Written(counted.size, counted.digest.hexdigest())

    async def read(self, version: str, start: int, end: int) -> bytes | AsyncIterator[bytes]:
        """See `BlobStore`."""
        try:
            if end - start <= SMALL_BYTES:
                if end > start:
                    return bytes(
                        await obstore.get_range_async(self._store, _place(version), start=start, end=end)
                    )
                await obstore.head_async(self._store, _place(version))
                return b""
            found = await obstore.get_async(self._store, _place(version), options={"range": (start, end)})
        except FileNotFoundError:
            raise Missing(version) from None
        return _pieces(found)

    async def copy(self, version: str, new_version: str) -> None:
        """See `BlobStore`."""
        try:
            await obstore.copy_async(self._store, _place(version), _place(new_version))
        except FileNotFoundError:
            raise Missing(version) from None

    async def join(self, version: str, parts: Sequence[str]) -> int:
        """See `BlobStore`. The bytes pass through here."""
        counted = _Counted(self._read_all([_place(part) for part in parts]), 2**63)
        await self._put(_place(version), counted)
        return counted.size

    async def delete(self, versions: Iterable[str]) -> None:
        """See `BlobStore`."""
        await self._delete([_place(version) for version in versions])

    # Drafts.

    async def note_draft(self, name: str, notes: bytes) -> None:
        """See `BlobStore`."""
        await obstore.put_async(self._store, f"{_draft(name)}/{_NOTES}", notes)

    async def read_draft(self, name: str) -> Draft:
        """See `BlobStore`."""
        try:
            notes = bytes(
                await (await obstore.get_async(self._store, f"{_draft(name)}/{_NOTES}")).bytes_async()
            )
        except FileNotFoundError:
            raise Missing(name) from None
        pieces = await self._pieces_of(name)
        return Draft(sum(size for _, size in pieces), notes)

    async def append(self, name: str, chunks: AsyncIterator[bytes], limit: int) -> int:
        """See `BlobStore`. A request is cut into objects; what it brought before it broke off is one, too."""
        size = (await self.read_draft(name)).size
        waiting = bytearray()
        try:
            async for chunk in chunks:
                if size + len(waiting) + len(chunk) > limit:
                    raise TooLarge
                waiting += chunk
                if len(waiting) >= PART_BYTES:
                    size, waiting = await self._add(name, size, waiting), bytearray()
        finally:
            if waiting:
                size = await self._add(name, size, waiting)
        return size

    async def finish_draft(self, name: str, version: str) -> Written:
        """See `BlobStore`."""
        await self.read_draft(name)
        pieces = await self._pieces_of(name)
        counted = _Counted(self._read_all([path for path, _ in pieces]), 2**63)
        await self._put(_place(version), counted)
        return Written(counted.size, counted.digest.hexdigest())

    async def delete_drafts(self, names: Iterable[str]) -> None:
        """See `BlobStore`. Notes go first: a draft without them is none."""
        for name in names:
            pieces = await self._pieces_of(name)
            await self._delete([f"{_draft(name)}/{_NOTES}", *(path for path, _ in pieces)])

    # Looking round.

    async def survey(self) -> AsyncGenerator[Kept]:
        """See `BlobStore`."""
        async for meta in self._list("objects/"):
            name = meta["path"].rpartition("/")[2]
            yield Kept("version", name, meta["last_modified"].timestamp())
        found: dict[str, float] = {}
        async for meta in self._list("drafts/"):
            name = meta["path"].split("/")[-2]
            found[name] = max(found.get(name, 0.0), meta["last_modified"].timestamp())
        for name, changed_at in found.items():
            yield Kept("draft", name, changed_at)

    async def _put(self, path: str, counted: _Counted) -> None:
        """Few bytes at once, more in parts. What goes wrong with the bytes is raised as it was."""
        head = bytearray()
        chunks = aiter(counted)
        async for chunk in chunks:
            head += chunk
            if len(head) >= PART_BYTES:
                break
        else:
            await obstore.put_async(self._store, path, bytes(head), use_multipart=False)
            return
        try:
            await obstore.put_async(
                self._store,
                path,
                _chained(bytes(head), chunks),
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=_AT_ONCE,
            )
        except BaseException:
            if counted.failure is not None:
                raise counted.failure from None
            raise

    async def _add(self, name: str, offset: int, data: bytearray) -> int:
        await obstore.put_async(
            self._store, f"{_draft(name)}/{offset:016x}", bytes(data), use_multipart=False
        )
        return offset + len(data)

    async def _pieces_of(self, name: str) -> list[tuple[str, int]]:
        """Path and size of what has come, in order, as far as nothing is missing in between."""
        found: dict[int, tuple[str, int]] = {}
        async for meta in self._list(f"{_draft(name)}/"):
            last = meta["path"].rpartition("/")[2]
            if last != _NOTES:
                found[int(last, 16)] = (f"{_draft(name)}/{last}", meta["size"])
        pieces: list[tuple[str, int]] = []
        offset = 0
        while offset in found:
            pieces.append(found[offset])
            offset += found[offset][1]
        return pieces

    async def _read_all(self, paths: Sequence[str]) -> AsyncGenerator[bytes]:
        for path in paths:
            try:
                found = await obstore.get_async(self._store, path)
            except FileNotFoundError:
                raise Missing(path) from None
            async for piece in found.stream():
                yield bytes(piece)

    async def _list(self, prefix: str) -> AsyncGenerator[obstore.ObjectMeta]:
        pages = obstore.list(self._store, prefix, chunk_size=1000)  # pyright: ignore[reportUnknownMemberType]  (an overload for Arrow)
        async for page in pages:
            for meta in page:
                yield meta

    async def _delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            with suppress(FileNotFoundError):
                await obstore.delete_async(self._store, path)


class _Counted:
    """Chunks with their number and digest; more than `limit` bytes are refused. failure: what they raised."""

    def __init__(self, chunks: AsyncIterator[bytes], limit: int) -> None:
        self._chunks = chunks
        self._limit = limit
        self.size = 0
        self.digest = hashlib.md5(usedforsecurity=False)
        self.failure: BaseException | None = None

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        try:
            async for chunk in self._chunks:
                self.size += len(chunk)
                if self.size > self._limit:
                    raise TooLarge
                self.digest.update(chunk)
                yield chunk
        except BaseException as error:
            self.failure = error
            raise


async def _chained(head: bytes, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    yield head
    async for chunk in chunks:
        yield chunk


async def _pieces(found: obstore.GetResult) -> AsyncGenerator[bytes]:
    async for piece in found.stream(min_chunk_size=512 * 1024):
        yield bytes(piece)


def _place(version: str) -> str:
    return f"objects/{_name(version)}"


def _draft(name: str) -> str:
    return f"drafts/{_name(name)}"


def _name(name: str) -> str:
    if not name or not all(character.isalnum() or character == "-" for character in name):
        # a row that a seed made may say anything here; it is no name of ours
        return "none"
    return name
