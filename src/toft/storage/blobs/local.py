"""Bytes as files of this machine, one per version: written beside, then renamed, so that none is partial.

Few bytes are written and read at once, on the event loop: that is quicker than handing them to a thread. Many
go through threads, piece by piece.

    objects/<aa>/<version>    bytes that never change again, by the first two characters of the version
    drafts/<name>, .json      uploads that come in several requests: bytes, and what is noted about them
    tmp/                      what is being written; emptied at the first write of a process

A copy is a hard link. So is the share of a fork: it links every file under `objects/` into a folder of its
own, and from then on each side adds and removes names without the other noticing. `drafts/` and `tmp/` belong
to the requests of one backend and stay where they are.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from toft.storage.blobs.files import (
    FULL,
    SMALL_BYTES,
    Digest,
    Writer,
    concatenate,
    digest_file,
    read_pieces,
    replace_file,
    sync_folder,
    unlink_all,
)
from toft.storage.blobs.store import Draft, Kept, Missing, NoRoom, Written

#: drafts whose digest is kept at hand; that of another is made again from its bytes
_DIGESTS: Final = 64


class LocalBlobs:
    """Versions under one folder. is_durable: they survive a crash of the machine, at the price of waiting."""

    def __init__(self, root: Path, *, is_durable: bool = False) -> None:
        self._objects = root / "objects"
        self._drafts = root / "drafts"
        self._tmp = root / "tmp"
        self._is_durable = is_durable
        self._is_swept = False
        self._digests: OrderedDict[str, Digest] = OrderedDict()

    async def write(self, version: str, chunks: AsyncIterator[bytes], limit: int) -> Written:
        """See `BlobStore`. What arrives before a failure or cancellation is removed."""
        writer = Writer(self._make(self._tmp) / version, limit, is_durable=self._is_durable)
        try:
            with _room():
                async for chunk in chunks:
                    await writer.add(chunk)
                written = await writer.finish()
                await self._publish(writer.path, version)
        except BaseException:
            writer.abandon()
            raise
        return written

    async def read(self, version: str, start: int, end: int) -> bytes | AsyncIterator[bytes]:
        """See `BlobStore`."""
        try:
            file = self._path(version).open("rb")
        except FileNotFoundError:
            raise Missing(version) from None
        if end - start > SMALL_BYTES:
            return read_pieces(file, start, end)
        with file:
            file.seek(start)
            return file.read(end - start)

    async def copy(self, version: str, new_version: str) -> None:
        """See `BlobStore`."""
        try:
            self._place(new_version).hardlink_to(self._path(version))
        except FileNotFoundError:
            raise Missing(version) from None
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
            await self._copy_bytes(new_version, [self._path(version)])
        if self._is_durable:
            await asyncio.to_thread(sync_folder, self._place(new_version).parent)

    async def join(self, version: str, parts: Sequence[str]) -> int:
        """See `BlobStore`. One part is linked, more are copied by the kernel."""
        paths = [self._path(part) for part in parts]
        if len(paths) == 1:
            await self.copy(parts[0], version)
            return self._path(version).stat().st_size
        return await self._copy_bytes(version, paths)

    async def delete(self, versions: Iterable[str]) -> None:
        """See `BlobStore`."""
        await _remove([self._path(version) for version in versions])

    # Drafts.

    async def note_draft(self, name: str, notes: bytes) -> None:
        """See `BlobStore`."""
        with _room():
            bytes_file, notes_file = self._draft_files(name)
            bytes_file.touch(mode=0o600)
            replace_file(notes_file, notes, is_durable=self._is_durable)
            if self._is_durable:
                await asyncio.to_thread(sync_folder, self._drafts)

    async def read_draft(self, name: str) -> Draft:
        """See `BlobStore`."""
        bytes_file, notes_file = self._draft_files(name)
        try:
            return Draft(bytes_file.stat().st_size, notes_file.read_bytes())
        except FileNotFoundError:
            raise Missing(name) from None

    async def append(self, name: str, chunks: AsyncIterator[bytes], limit: int) -> int:
        """See `BlobStore`. How far a draft has come is how long its file is."""
        path, _ = self._draft_files(name)
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise Missing(name) from None
        digest = self._digests.pop(name, None)
        if digest is None or digest.size != size:
            digest = Digest() if size == 0 else None
        writer = Writer(path, limit, is_durable=self._is_durable, size=size, digest=digest)
        try:
            with _room():
                async for chunk in chunks:
                    await writer.add(chunk)
                await writer.finish()
        except BaseException:
            await writer.salvage()
            raise
        finally:
            self._keep_digest(name, writer.digest)
        return writer.size

    async def finish_draft(self, name: str, version: str) -> Written:
        """See `BlobStore`. The version is a second name of the draft's file."""
        path, _ = self._draft_files(name)
        try:
            size = path.stat().st_size
            digest = self._digests.pop(name, None)
            if digest is None or digest.size != size:
                digest = await asyncio.to_thread(digest_file, path)
            with suppress(FileExistsError):
                self._place(version).hardlink_to(path)
        except FileNotFoundError:
            raise Missing(name) from None
        if self._is_durable:
            await asyncio.to_thread(sync_folder, self._place(version).parent)
        return Written(digest.size, digest.hexdigest())

    async def delete_drafts(self, names: Iterable[str]) -> None:
        """See `BlobStore`."""
        paths: list[Path] = []
        for name in names:
            self._digests.pop(name, None)
            # its notes go first: a draft without them is none
            paths += reversed(self._draft_files(name))
        await _remove(paths)

    # Looking round.

    async def survey(self) -> AsyncIterator[Kept]:
        """See `BlobStore`. The time is that of the last change of names, which a hard link is too."""
        folders = await asyncio.to_thread(_list_folders, self._objects)
        for folder in folders:
            for name, changed_at in await asyncio.to_thread(_list_files, folder):
                yield Kept("version", name, changed_at)
        found: dict[str, float] = {}
        for name, changed_at in await asyncio.to_thread(_list_files, self._drafts):
            name = name.partition(".")[0]
            found[name] = max(found.get(name, 0), changed_at)
        for name, changed_at in found.items():
            yield Kept("draft", name, changed_at)

    # Places.

    def _path(self, version: str) -> Path:
        if not _is_name(version):
            # a row that a seed made may say anything here; it is no name of ours
            return self._objects / "none"
        return self._objects / version[:2] / version

    def _place(self, version: str) -> Path:
        path = self._path(version)
        self._make(path.parent)
        return path

    def _draft_files(self, name: str) -> tuple[Path, Path]:
        if not _is_name(name):
            raise Missing(name)
        folder = self._make(self._drafts)
        return folder / name, folder / f"{name}.json"

    async def _copy_bytes(self, version: str, sources: Sequence[Path]) -> int:
        draft = self._make(self._tmp) / version
        try:
            with _room():
                size = await asyncio.to_thread(concatenate, sources, draft, is_durable=self._is_durable)
                await self._publish(draft, version)
        except FileNotFoundError as error:
            raise Missing(str(error.filename)) from None
        finally:
            draft.unlink(missing_ok=True)
        return size

    async def _publish(self, draft: Path, version: str) -> None:
        place = self._place(version)
        os.rename(draft, place)  # noqa: PTH104 - at once, and quicker than a thread
        if self._is_durable:
            await asyncio.to_thread(sync_folder, place.parent)

    def _make(self, folder: Path) -> Path:
        """The folder, made when it is not there: another tree may have taken the place of the one we knew."""
        if not os.path.isdir(folder):  # noqa: PTH112 - a third of the price
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder is self._tmp and not self._is_swept:
            # one process writes here, and it has only begun: these are from one that ended in the middle
            self._is_swept = True
            unlink_all(folder.iterdir())
        return folder

    def _keep_digest(self, name: str, digest: Digest) -> None:
        self._digests[name] = digest
        while len(self._digests) > _DIGESTS:
            self._digests.popitem(last=False)


def _is_name(name: str) -> bool:
    return bool(name) and all(character.isalnum() or character == "-" for character in name)


@contextmanager
def _room() -> Generator[None]:
    """Name the failures of a disk that is full."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise NoRoom from None
        raise


async def _remove(paths: Sequence[Path]) -> None:
    if len(paths) > 8:
        await asyncio.to_thread(unlink_all, paths)
    else:
        unlink_all(paths)


def _list_folders(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError):
        return [path for path in folder.iterdir() if path.is_dir()]
    return []


def _list_files(folder: Path) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    found.append((entry.name, entry.stat(follow_symlinks=False).st_ctime))
    return found
