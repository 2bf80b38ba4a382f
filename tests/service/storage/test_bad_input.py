"""What is wrong with a request: the right words, nothing lost, nothing half-visible."""

from __future__ import annotations

import asyncio
import base64
import errno
import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.kit.fix_storage import StorageBackend
from toft.storage.blobs import files
from toft.storage.content import parse_user_metadata
from toft.storage.errors import StorageError
from toft.storage.s3.form import check_policy

ALLOWED = "abzABZ019_/!-.*'() &$=@;:+,?"
REFUSED = '[]{}^|#%~<>"\\`\x00\x01\x1f\x7f\n\r\t\u00e9\u0131\u2028\ufeff\U0001f600'


async def put(store: StorageBackend, key: str, content: bytes = b"x") -> httpx.Response:
    return await store.call(f"PUT /object/things/{quote(key, safe='')}", content=content)


async def test_every_character(store: StorageBackend):
    """Those that upstream allows come back as they went; every other makes no key, and nothing is stored."""
    await store.bucket()
    for character in ALLOWED:
        key = f"a{character}b"
        assert (await put(store, key, key.encode())).status_code == 200, key
        assert (await store.call(f"GET /object/things/{quote(key, safe='')}")).content == key.encode()
    count = len(store.files())
    for character in REFUSED:
        answer = await put(store, f"a{character}b")
        assert (answer.status_code, answer.json()["code"]) == (400, "InvalidKey"), repr(character)
    assert len(store.files()) == count


async def test_longest_names(store: StorageBackend):
    """1,024 bytes are a key, one more is none; a hundred characters are a bucket's name, one more is none."""
    await store.bucket()
    longest = "/".join(["n" * 255] * 4) + "/"
    assert len(longest) == 1024
    for key in (longest, "x" * 1024):
        assert (await put(store, key, b"long")).status_code == 200
        assert (await store.call(f"GET /object/things/{key}")).content == b"long"
    assert (await put(store, "x" * 1025)).json()["code"] == "InvalidKey"
    assert (await store.call("POST /bucket", {"name": "b" * 100})).status_code == 200
    assert (await store.call("POST /bucket", {"name": "b" * 101})).json()["code"] == "InvalidBucketName"


async def test_normalisation_pairs(store: StorageBackend):
    """Both spellings of an accented letter are refused: no key can shadow another that looks the same."""
    await store.bucket()
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        answer = await put(store, unicodedata.normalize(form, "caf\u00e9.txt"))
        assert answer.json()["code"] == "InvalidKey"
    assert (await put(store, "CAFE.txt", b"upper")).status_code == 200
    assert (await put(store, "cafe.txt", b"lower")).status_code == 200
    assert (await store.call("GET /object/things/CAFE.txt")).content == b"upper"


@pytest.mark.parametrize(
    "path",
    [
        "../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "..%252f..%252fetc",
        "a/../b",
        "a/./b",
        "a/..",
        "./a",
        "..",
        ".",
        "%2e",
        "a%2f..%2fb",
        "..%5c..%5cetc",
        "..\\..\\etc",
        "..%c0%af..%c0%afetc",
        "..%ef%bc%8f..",
        "a%00/../b",
    ],
)
async def test_no_way_out(store: StorageBackend, path: str, tmp_path: Path):
    """Climbing in every spelling is refused, on the way in and on the way out, by each door."""
    await store.bucket()
    assert store.listener is not None
    before = sorted(tmp_path.rglob("*"))

    async def raw(method: str, target: str, *fields: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", store.listener.port)  # type: ignore[union-attr]
        lines = [
            f"{method} /storage/v1{target} HTTP/1.1", "host: x", "connection: close", "content-length: 1",
            f"authorization: Bearer {store.keys.service_role_key}", *fields,
        ]  # fmt: skip
        writer.write("\r\n".join([*lines, "", "x"]).encode())
        answer = await reader.read()
        writer.close()
        return answer

    for line in (("PUT", "/object/things/"), ("GET", "/object/things/"), ("GET", "/object/info/things/")):
        answer = await raw(line[0], line[1] + path)
        assert answer.startswith(b"HTTP/1.1 400") or answer.startswith(b"HTTP/1.1 404"), answer
        assert b"root:" not in answer
    for name in ("sourceKey", "destinationKey"):
        body = {"bucketId": "things", "sourceKey": "x", "destinationKey": "y", name: "../../x"}
        assert (await store.call("POST /object/copy", body)).status_code == 400
        assert (await store.call("POST /object/move", body)).status_code == 400
    assert sorted(tmp_path.rglob("*")) == before or store.files() == []


async def test_empty_objects(store: StorageBackend):
    """No bytes are an object too: raw, by a form, read whole, by HEAD; no part of them can be had."""
    await store.bucket()
    assert (await store.call("POST /object/things/raw", content=b"")).status_code == 200
    assert store.http is not None
    form = await store.http.post(
        f"{store.url}/object/things/form",
        files={"file": ("e.txt", b"", "text/plain")},
        headers={"authorization": f"Bearer {store.keys.service_role_key}"},
    )
    assert form.status_code == 200
    for key in ("raw", "form"):
        found = await store.call(f"GET /object/things/{key}")
        assert (found.status_code, found.content, found.headers["content-length"]) == (200, b"", "0")
        part = await store.call(f"GET /object/things/{key}", range="bytes=0-")
        assert (part.status_code, part.json()["code"]) == (416, "InvalidRange")


async def test_length_that_lies(store: StorageBackend):
    """Fewer bytes than announced are no object; what comes beyond them is not part of it."""
    await store.bucket()
    assert store.listener is not None
    for announced, sent in ((10, b"12345"), (10**15, b"12345"), (3, b"12345")):
        reader, writer = await asyncio.open_connection("127.0.0.1", store.listener.port)
        head = (
            f"PUT /storage/v1/object/things/x HTTP/1.1\r\nhost: x\r\ncontent-length: {announced}\r\n"
            f"authorization: Bearer {store.keys.service_role_key}\r\n\r\n"
        )
        writer.write(head.encode() + sent)
        if announced == 10:
            writer.write_eof()
        answer = await reader.read(2000)
        writer.close()
        if announced == 3:
            # what follows is no request, and may be answered in place of this one; nothing is half stored
            found = await store.call("GET /object/things/x")
            assert found.content == b"123" or (b" 200 " not in answer and found.json()["code"] == "NoSuchKey")
        elif announced > 10:
            assert b"413" in answer
        if announced > len(sent):
            assert (await store.call("GET /object/things/x")).json()["code"] == "NoSuchKey"
            async with asyncio.timeout(20):
                while store.files():
                    await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "kind", ["text/html", "image/svg+xml", "IMAGE/PNG", "image/png; x=text/html", "image"]
)
async def test_types_that_pretend(store: StorageBackend, kind: str):
    """The declared type is what rules see and readers get; a page never runs as one of the site's."""
    await store.bucket(allowed_mime_types=["image/png"])
    answer = await store.call("PUT /object/things/x", content=b"<html>", content_type=kind)
    if kind.lower().partition(";")[0] == "image/png":
        assert answer.status_code == 200
        found = await store.call("GET /object/things/x")
        assert "text/html" not in found.headers["content-type"] or kind != "image/png; x=text/html"
    else:
        assert answer.json()["code"] == "InvalidMimeType"
        assert store.files() == []


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A disk that takes so many more bytes; the fault is at the file, everything else is real."""
    room = [10**12]
    real = files.Writer._write  # pyright: ignore[reportPrivateUsage]

    def write(self: files.Writer, file: object, waiting: bytearray) -> None:
        room[0] -= len(waiting)
        if room[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self, file, waiting)  # type: ignore[arg-type]

    monkeypatch.setattr(files.Writer, "_write", write)
    return room


async def test_disk_that_fills_half_way(store: StorageBackend, full_disk: list[int]):
    """507, and nothing is left; what was there before stays; there is room again, and it works again."""
    await store.bucket()
    await store.call("PUT /object/things/x", content=b"before")
    full_disk[0] = 1_000_000
    for data in (b"x" * 2_000_000, b"x" * 1_000_001):
        answer = await store.call("PUT /object/things/x", content=data)
        assert (answer.status_code, answer.json()["statusCode"]) == (507, "507")
        full_disk[0] = 1_000_000
    full_disk[0] = 10**12
    assert (await store.call("GET /object/things/x")).content == b"before"
    assert len(store.files()) == 1
    assert (await store.call("PUT /object/things/x", content=b"after")).status_code == 200


async def test_readers_while_it_is_replaced(store: StorageBackend):
    """Whoever reads gets one version, whole, however often another takes its place."""
    await store.bucket()
    contents = [bytes([65 + number]) * 300_000 for number in range(4)]
    await store.call("PUT /object/things/x", content=contents[0])
    done = asyncio.Event()

    async def write() -> None:
        for number in range(30):
            await store.call("PUT /object/things/x", content=contents[number % 4])
        done.set()

    async def read() -> None:
        while not done.is_set():
            found = await store.call("GET /object/things/x")
            assert found.status_code == 200, found.text
            assert found.content in contents

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        for _ in range(4):
            group.create_task(read())
    assert len(store.files()) == 1


async def test_upload_that_is_aborted_in_a_form(store: StorageBackend):
    """A form that ends in the middle of its file leaves nothing."""
    await store.bucket()

    async def broken() -> AsyncIterator[bytes]:
        yield b'--b\r\ncontent-disposition: form-data; name=""; filename="x"\r\n\r\n' + b"x" * 200_000

    answer = await store.call(
        "POST /object/things/x", content=broken(), content_type="multipart/form-data; boundary=b"
    )
    assert answer.status_code == 400
    assert store.files() == []


async def test_endless_nesting(store: StorageBackend):
    """JSON that is nested without end is as any other that cannot be read: refused, or passed over."""
    await store.bucket()
    deep = b"[" * 100_000
    for route in ("POST /bucket", "POST /object/list/things", "POST /object/sign/things/x"):
        answer = await store.call(route, content=deep, content_type="application/json")
        assert answer.status_code == 400, route
    assert parse_user_metadata(deep) is None
    assert parse_user_metadata(b'{"a":' * 100_000) is None
    with pytest.raises(StorageError) as caught:
        check_policy({"policy": base64.b64encode(deep).decode()}, "things", 0.0)
    assert caught.value.code == "InvalidPolicyDocument"
