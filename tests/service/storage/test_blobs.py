"""Files as a store of bytes: what only they can do wrong. The rest is in test_blob_contract.py."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from toft.storage.blobs.files import PIECE_BYTES
from toft.storage.blobs.local import LocalBlobs


@pytest.fixture(params=[False, True], ids=["quick", "durable"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> LocalBlobs:
    return LocalBlobs(tmp_path, is_durable=request.param)


async def pieces(data: bytes, size: int = 60_000) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def whole(body: bytes | AsyncIterator[bytes]) -> bytes:
    return body if isinstance(body, bytes) else b"".join([piece async for piece in body])


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


async def test_a_failure_in_the_middle_leaves_nothing(blobs: LocalBlobs, tmp_path: Path):
    """Whether the client breaks off or the task is cancelled while a thread writes."""

    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * PIECE_BYTES
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await blobs.write("aa-1", broken(), 10**9)
    assert files(tmp_path) == []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * PIECE_BYTES
            await asyncio.sleep(0)

    for delay in (0, 0.001, 0.01):
        task = asyncio.ensure_future(blobs.write("aa-2", endless(), 10**12))
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with asyncio.timeout(5):
        while files(tmp_path):
            await asyncio.sleep(0.01)


async def test_leftovers_of_a_process_that_ended(tmp_path: Path):
    """What was being written when it ended goes with the next write."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "aa-old").write_bytes(b"half")
    await LocalBlobs(tmp_path).write("aa-1", pieces(b"x"), 10)
    assert [path.name for path in files(tmp_path)] == ["aa-1"]


async def test_reader_that_leaves_early(blobs: LocalBlobs):
    """A stream that is closed in the middle frees its file."""
    data = b"x" * (PIECE_BYTES * 3)
    await blobs.write("aa-1", pieces(data), len(data))
    open_before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        stream = await blobs.read("aa-1", 0, len(data))
        assert not isinstance(stream, bytes)
        async for _piece in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]
    assert len(os.listdir("/proc/self/fd")) <= open_before
