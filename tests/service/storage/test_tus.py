"""Resumable uploads over HTTP: what tus asks of a server, and what happens when something breaks."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import httpx
import pytest

from tests.kit.fix_storage import StorageBackend
from toft.storage.tus.uploads import LIFE_SECONDS

BYTES = "application/offset+octet-stream"


def metadata(**fields: str) -> str:
    given = {"bucketName": "things", "objectName": "a.txt", "contentType": "text/plain", **fields}
    return ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in given.items())


async def send(store: StorageBackend, method: str, url: str = "", **options: Any) -> httpx.Response:
    """A request with the fields that every tus request has; others replace them, None takes one away."""
    assert store.http is not None
    headers = {
        "authorization": f"Bearer {store.keys.service_role_key}",
        "tus-resumable": "1.0.0",
        **options.pop("headers", {}),
    }
    return await store.http.request(
        method,
        url or f"{store.url}/upload/resumable",
        headers={name: value for name, value in headers.items() if value is not None},
        **options,
    )


async def create(store: StorageBackend, length: int | None, **fields: str) -> httpx.Response:
    headers = {"upload-length": str(length)} if length is not None else {"upload-defer-length": "1"}
    return await send(store, "POST", headers={**headers, "upload-metadata": metadata(**fields)})


async def patch(store: StorageBackend, url: str, offset: int, data: Any, **more: str) -> httpx.Response:
    headers = {"content-type": BYTES, "upload-offset": str(offset), **more}
    return await send(store, "PATCH", url, content=data, headers=headers)


async def offset_of(store: StorageBackend, url: str) -> int:
    answer = await send(store, "HEAD", url)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    return int(answer.headers["upload-offset"])


async def read(store: StorageBackend, key: str = "a.txt") -> httpx.Response:
    return await store.call(f"GET /object/authenticated/things/{key}")


async def test_what_it_can(store: StorageBackend):
    """OPTIONS needs no key; a browser of any origin may read every field."""
    assert store.http is not None
    answer = await store.http.options(f"{store.url}/upload/resumable", headers={"origin": "http://x"})
    assert answer.status_code == 204
    assert answer.headers["tus-version"] == "1.0.0"
    assert set(answer.headers["tus-extension"].split(",")) == {
        "creation", "creation-with-upload", "creation-defer-length", "termination", "expiration",
    }  # fmt: skip
    assert answer.headers["tus-max-size"] == str(store.settings.file_size_limit_bytes)
    assert "x-signature" in answer.headers["access-control-allow-headers"]
    assert "Location" in answer.headers["access-control-expose-headers"]


async def test_bytes_with_the_creation(store: StorageBackend):
    """The first request may bring some, or all."""
    await store.bucket()
    headers = {"upload-length": "6", "upload-metadata": metadata(), "content-type": BYTES}
    made = await send(store, "POST", content=b"abc", headers=headers)
    assert (made.status_code, made.headers["upload-offset"]) == (201, "3")
    assert made.headers["upload-expires"].endswith("GMT")
    url = made.headers["location"]
    assert url.startswith(f"{store.url}/upload/resumable/")
    done = await patch(store, url, 3, b"def")
    assert (done.status_code, done.headers["upload-offset"], done.headers["tus-complete"]) == (204, "6", "1")
    assert (await read(store)).content == b"abcdef"
    headers["upload-metadata"] = metadata(objectName="b.txt")
    whole = await send(store, "POST", content=b"abcdef", headers=headers)
    assert (whole.status_code, whole.headers["tus-complete"]) == (201, "1")
    assert (await read(store, "b.txt")).content == b"abcdef"
    assert (await create(store, 0, objectName="empty.txt")).headers["tus-complete"] == "1"
    assert (await read(store, "empty.txt")).content == b""
    assert len(store.files()) == 3


async def test_length_that_is_said_later(store: StorageBackend):
    """It is complete when the length is known and reached."""
    await store.bucket()
    url = (await create(store, None)).headers["location"]
    assert (await send(store, "HEAD", url)).headers["upload-defer-length"] == "1"
    assert (await patch(store, url, 0, b"abc")).status_code == 204
    assert (await read(store)).status_code == 400
    assert (await patch(store, url, 3, b"d", **{"upload-length": "3"})).status_code == 413
    assert (await patch(store, url, 3, b"d", **{"upload-length": "4"})).headers["tus-complete"] == "1"
    assert (await read(store)).content == b"abcd"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"tus-resumable": None}, 412),
        ({"tus-resumable": "0.2.2"}, 412),
        ({"upload-length": None}, 400),
        ({"upload-defer-length": "1"}, 400),
        ({"upload-length": None, "upload-defer-length": "2"}, 400),
        ({"upload-length": "-1"}, 400),
        ({"upload-length": "1e3"}, 400),
        ({"upload-length": "9" * 30}, 400),
        ({"upload-metadata": "bucketName !"}, 400),
        ({"upload-metadata": ""}, 400),
        ({"upload-metadata": metadata(objectName="../up")}, 400),
        ({"upload-metadata": metadata(objectName="ü")}, 400),
        ({"upload-metadata": metadata(bucketName="no/thing")}, 400),
        ({"upload-metadata": metadata(bucketName="nothing")}, 404),
        ({"upload-metadata": metadata(contentType="text/html")}, 415),
        ({"upload-length": "101"}, 413),
        ({"upload-length": str(10**12)}, 413),
        ({"authorization": None}, 403),
        ({"authorization": "Bearer x.y.z"}, 403),
    ],
)
async def test_creations_that_are_refused(store: StorageBackend, headers: dict[str, str], status: int):
    """With real statuses and plain words, and nothing is left of them."""
    await store.bucket(file_size_limit=100, allowed_mime_types=["text/plain"])
    usual = {"upload-length": "3", "upload-metadata": metadata()}
    answer = await send(store, "POST", headers={**usual, **headers})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["tus-resumable"] == "1.0.0"
    assert store.files() == []


async def test_bytes_that_are_refused(store: StorageBackend):
    """Without type or offset, at another offset, or more than announced: what is there stays."""
    await store.bucket()
    url = (await create(store, 6)).headers["location"]
    assert (await patch(store, url, 0, b"abc")).status_code == 204
    assert (await send(store, "PATCH", url, content=b"x", headers={"upload-offset": "3"})).status_code == 400
    assert (await send(store, "PATCH", url, content=b"x", headers={"content-type": BYTES})).status_code == 403
    conflict = await patch(store, url, 0, b"abc")
    assert (conflict.status_code, conflict.text) == (409, "Upload-Offset conflict\n")
    assert (await patch(store, url, 3, b"toolong")).status_code == 413

    async def chunks() -> Any:
        for _ in range(40):
            yield b"x" * 100_000

    assert (await patch(store, url, 3, chunks())).status_code == 413
    assert await offset_of(store, url) <= 6


async def test_giving_up(store: StorageBackend):
    """What is terminated, unknown, expired or nonsense is not there; a finished upload stays."""
    await store.bucket()
    url = (await create(store, 6)).headers["location"]
    await patch(store, url, 0, b"abc")
    assert (await send(store, "DELETE", url)).status_code == 204
    assert (await send(store, "HEAD", url)).status_code == 404
    assert (await patch(store, url, 3, b"def")).status_code == 404
    assert store.files() == []
    for nonsense in ("x", "%00", base64.urlsafe_b64encode(b"things/a/../../etc").decode(), "Li4vLi4v"):
        assert (await send(store, "HEAD", f"{store.url}/upload/resumable/{nonsense}")).status_code == 404
    late = (await create(store, 6)).headers["location"]
    store.clock.turn(seconds=LIFE_SECONDS + 1)
    assert (await send(store, "HEAD", late, headers={"authorization": service(store)})).status_code == 410
    assert store.files() == []


def service(store: StorageBackend) -> str:
    return f"Bearer {store.token('', role='service_role')}"


async def test_finished_cannot_be_terminated(store: StorageBackend):
    """Its object stays, and a client that did not hear of the end can still ask."""
    await store.bucket()
    url = (await create(store, 3)).headers["location"]
    await patch(store, url, 0, b"abc")
    assert (await send(store, "DELETE", url)).status_code in (400, 404, 409)
    assert await offset_of(store, url) == 3
    assert (await read(store)).content == b"abc"


async def test_connection_that_breaks(store: StorageBackend):
    """What had arrived stays and is told; the client goes on from there."""
    await store.bucket()
    assert store.listener is not None
    data = bytes(range(256)) * 4096
    url = (await create(store, len(data))).headers["location"]
    reader, writer = await asyncio.open_connection("127.0.0.1", store.listener.port)
    path = url.removeprefix(store.url)
    head = (
        f"PATCH /storage/v1{path} HTTP/1.1\r\nhost: x\r\ntus-resumable: 1.0.0\r\nupload-offset: 0\r\n"
        f"content-type: {BYTES}\r\ncontent-length: {len(data)}\r\n"
        f"authorization: Bearer {store.keys.service_role_key}\r\n\r\n"
    )
    writer.write(head.encode() + data[:700_000])
    await writer.drain()
    # another request for the same upload makes the first one stop, as that of a client that came back does
    offset = await offset_of(store, url)
    writer.close()
    assert b" 423 " in (await reader.read() or b" 423 ")
    assert 0 <= offset <= 700_000
    assert (await patch(store, url, offset, data[offset:])).headers["tus-complete"] == "1"
    assert (await read(store)).content == data


async def test_process_that_ended_before_the_row(store: StorageBackend):
    """All bytes are there, the row is not: the client's next question completes the object."""
    await store.bucket()
    url = (await create(store, 3)).headers["location"]
    admin = await store.sql()
    await admin.script(
        "create function no() returns trigger language plpgsql as $$ begin"
        " if new.version <> '1' then raise 'not now'; end if; return new; end $$;"
        "create trigger no before insert on storage.objects for each row execute function no()"
    )
    assert (await patch(store, url, 0, b"abc")).status_code == 500
    assert (await read(store)).status_code == 400
    await admin.script("drop trigger no on storage.objects")
    store.configure()
    assert await offset_of(store, url) == 3
    assert (await read(store)).content == b"abc"
    assert len(store.files()) == 1


async def test_browser_that_cannot_say_patch(store: StorageBackend):
    """The method may stand in a field of its own."""
    await store.bucket()
    url = (await create(store, 3)).headers["location"]
    headers = {"x-http-method-override": "PATCH", "content-type": BYTES, "upload-offset": "0"}
    assert (await send(store, "POST", url, content=b"abc", headers=headers)).status_code == 204
    assert (await read(store)).content == b"abc"
