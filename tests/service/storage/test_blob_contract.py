"""What every store of bytes does alike: files, durable or not, and a bucket of an S3 server."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from obstore.store import S3Store

from toft.storage.blobs.bucket import PART_BYTES, BucketBlobs
from toft.storage.blobs.files import PIECE_BYTES, SMALL_BYTES
from toft.storage.blobs.local import LocalBlobs
from toft.storage.blobs.store import BlobStore, Missing, TooLarge

SIZES = [0, 1, SMALL_BYTES, SMALL_BYTES + 1, PIECE_BYTES + 7, PART_BYTES, 2 * PART_BYTES + 7]
SIGNED = "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """moto's S3 server, in a process of its own; its address."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    line = [sys.executable, "-P", "-W", "ignore", "-m", "moto.server", "-p", str(port)]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while True:
            assert server.poll() is None
            assert time.monotonic() < deadline
            try:
                request = urllib.request.Request(
                    f"{url}/bytes", method="PUT", headers={"authorization": SIGNED}
                )
                with urllib.request.urlopen(request):
                    break
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        yield url
        server.terminate()


@pytest.fixture(params=["quick", "durable", "bucket"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    if request.param != "bucket":
        return LocalBlobs(tmp_path, is_durable=request.param == "durable")
    store = S3Store(
        "bytes",
        prefix=f"backend-{os.urandom(8).hex()}",
        endpoint=request.getfixturevalue("s3_server"),
        region="us-east-1",
        access_key_id="any",
        secret_access_key="any",
        client_options={"allow_http": True},
    )
    return BucketBlobs(store)


async def pieces(data: bytes, size: int = 60_000) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def whole(body: bytes | AsyncIterator[bytes]) -> bytes:
    return body if isinstance(body, bytes) else b"".join([piece async for piece in body])


async def held(blobs: BlobStore) -> set[tuple[str, str]]:
    return {(kept.kind, kept.name) async for kept in blobs.survey()}


@pytest.mark.parametrize("size", SIZES)
async def test_bytes_come_back(blobs: BlobStore, size: int):
    """With their size and digest; parts of them too."""
    data = os.urandom(size)
    written = await blobs.write("aa-1", pieces(data), size)
    assert (written.size, written.md5) == (size, hashlib.md5(data).hexdigest())
    assert await whole(await blobs.read("aa-1", 0, size)) == data
    if size > 10:
        assert await whole(await blobs.read("aa-1", 5, size - 3)) == data[5 : size - 3]
    assert await held(blobs) == {("version", "aa-1")}


@pytest.mark.parametrize("size", [1, PIECE_BYTES * 2, PART_BYTES + 10])
async def test_too_much_leaves_nothing(blobs: BlobStore, size: int):
    """The limit is a limit, at the first byte beyond it."""
    with pytest.raises(TooLarge):
        await blobs.write("aa-1", pieces(b"x" * (size + 1)), size)
    assert await held(blobs) == set()


@pytest.mark.parametrize("size", [10, PART_BYTES + 10])
async def test_a_failure_in_the_middle_leaves_nothing(blobs: BlobStore, size: int):
    """And comes out as it was."""

    async def broken() -> AsyncIterator[bytes]:
        async for piece in pieces(b"x" * size):
            yield piece
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await blobs.write("aa-1", broken(), 10**9)
    assert await held(blobs) == set()


async def test_copies_and_forgetting(blobs: BlobStore):
    """A copy outlives its source; forgetting twice does not matter; what is not there is `Missing`."""
    await blobs.write("aa-1", pieces(b"hello"), 10)
    await blobs.copy("aa-1", "bb-2")
    await blobs.delete(["aa-1", "aa-1", "nothing"])
    assert await whole(await blobs.read("bb-2", 0, 5)) == b"hello"
    for version in ("aa-1", "", "../../etc/passwd", "a/b", "..", "x\0y"):
        with pytest.raises(Missing):
            await whole(await blobs.read(version, 0, 1))
        with pytest.raises(Missing):
            await blobs.copy(version, "cc-3")
    await blobs.delete([f"bb-{number}" for number in range(20)])
    assert await held(blobs) == set()


@pytest.mark.parametrize("count", [1, 3])
async def test_joining(blobs: BlobStore, count: int):
    """Parts become one, in the order that was said, and stay."""
    parts = [os.urandom(100_000) for _ in range(count)]
    for number, part in enumerate(parts):
        await blobs.write(f"aa-{number}", pieces(part), 10**6)
    names = [f"aa-{number}" for number in reversed(range(count))]
    assert await blobs.join("bb-whole", names) == 100_000 * count
    assert await whole(await blobs.read("bb-whole", 0, 100_000 * count)) == b"".join(reversed(parts))
    assert len(await held(blobs)) == count + 1
    with pytest.raises(Missing):
        await blobs.join("cc-other", ["aa-0", "nothing"])


async def test_drafts(blobs: BlobStore):
    """They grow by what comes, keep what came before a failure, and become a version."""
    data = os.urandom(PART_BYTES + 300_000)
    await blobs.note_draft("d-1", b"first")
    assert (await blobs.read_draft("d-1")).size == 0
    assert await blobs.append("d-1", pieces(data[:100_000]), len(data)) == 100_000

    async def broken() -> AsyncIterator[bytes]:
        yield data[100_000:150_000]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await blobs.append("d-1", broken(), len(data))
    with pytest.raises(TooLarge):
        await blobs.append("d-1", pieces(b"x" * len(data)), 160_000)
    await blobs.note_draft("d-1", b"second")
    draft = await blobs.read_draft("d-1")
    assert (draft.notes, 150_000 <= draft.size <= 160_000) == (b"second", True)
    await blobs.delete_drafts(["d-1"])
    await blobs.note_draft("d-2", b"again")
    await blobs.append("d-2", pieces(data[:7]), len(data))
    assert await blobs.append("d-2", pieces(data[7:]), len(data)) == len(data)
    assert await held(blobs) == {("draft", "d-2")}
    for _ in range(2):
        written = await blobs.finish_draft("d-2", "dd-version")
        assert (written.size, written.md5) == (len(data), hashlib.md5(data).hexdigest())
    await blobs.delete_drafts(["d-2", "d-2"])
    assert await whole(await blobs.read("dd-version", 0, len(data))) == data
    assert await held(blobs) == {("version", "dd-version")}
    for name in ("d-2", "nothing", "../x", ""):
        with pytest.raises(Missing):
            await blobs.read_draft(name)
        with pytest.raises(Missing):
            await blobs.append(name, pieces(b"x"), 10)
