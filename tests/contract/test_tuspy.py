"""tuspy against our resumable uploads: the client that people use from Python."""

from __future__ import annotations

import asyncio
import hashlib
import os
from io import BytesIO

import pytest
from tusclient.client import TusClient
from tusclient.exceptions import TusCommunicationError
from tusclient.uploader import Uploader

from tests.kit.fix_storage import StorageBackend

DATA = os.urandom(700_000)


def make_uploader(store: StorageBackend, data: bytes = DATA, **options: object) -> Uploader:
    signature = options.pop("signature", None)
    headers = {"x-signature": str(signature)} if signature else {}
    if not signature:
        headers["authorization"] = f"Bearer {options.pop('token', store.keys.service_role_key)}"
    if options.pop("upsert", False):
        headers["x-upsert"] = "true"
    key = str(options.pop("key", "far/away.bin"))
    metadata = {"bucketName": "things", "objectName": key, "contentType": "image/png", "cacheControl": "60"}
    metadata |= {"metadata": '{"a": 1}'}
    endpoint = f"{store.url}/upload/resumable{'/sign' if signature else ''}"
    client = TusClient(endpoint, headers=headers)
    return client.uploader(file_stream=BytesIO(data), metadata=metadata, **options)


async def test_upload_in_pieces(store: StorageBackend):
    """Nothing is visible before the last byte; then it is an object like any other."""
    await store.bucket(public=True)
    uploader = make_uploader(store, chunk_size=300_000)
    await asyncio.to_thread(uploader.upload_chunk)
    assert (await store.call("GET /object/public/things/far/away.bin")).status_code == 400
    await asyncio.to_thread(uploader.upload)
    found = await store.call("GET /object/public/things/far/away.bin")
    assert found.content == DATA
    assert found.headers["content-type"] == "image/png"
    assert found.headers["cache-control"] == "max-age=60"
    assert found.headers["etag"] == f'"{hashlib.md5(DATA).hexdigest()}"'
    info = (await store.call("GET /object/info/things/far/away.bin")).json()
    assert info["metadata"] == {"a": 1}
    assert len(store.files()) == 1


async def test_going_on_where_it_broke_off(store: StorageBackend):
    """Another client, and another process, finds what has arrived."""
    await store.bucket(public=True)
    uploader = make_uploader(store, chunk_size=300_000)
    await asyncio.to_thread(uploader.upload_chunk)
    store.configure()
    later = await asyncio.to_thread(make_uploader, store, chunk_size=300_000, url=uploader.url)
    assert await asyncio.to_thread(later.get_offset) == 300_000
    await asyncio.to_thread(later.upload)
    assert (await store.call("GET /object/public/things/far/away.bin")).content == DATA
    again = await asyncio.to_thread(make_uploader, store, url=uploader.url)
    assert await asyncio.to_thread(again.get_offset) == len(DATA)


async def test_existing_keys(store: StorageBackend):
    """They are refused at the first request, unless the upload may replace them."""
    await store.bucket()
    await asyncio.to_thread(make_uploader(store).upload)
    with pytest.raises(TusCommunicationError) as refused:
        await asyncio.to_thread(make_uploader(store).upload)
    assert refused.value.status_code == 409
    other = b"other"
    await asyncio.to_thread(make_uploader(store, other, upsert=True).upload)
    assert (await store.call("GET /object/authenticated/things/far/away.bin")).content == other
    assert len(store.files()) == 1


async def test_signed(store: StorageBackend):
    """By the token of a signed upload URL, without any other; it names the owner."""
    await store.bucket()
    admin = await store.sql()
    await admin.script(
        "create policy w on storage.objects for insert to authenticated with check (bucket_id = 'things')"
    )
    user = "7f4e8f4e-4d2c-4f0a-8a8e-0d6f4d3c2b1a"
    signed = await store.call("POST /object/upload/sign/things/far/away.bin", {}, token=store.token(user))
    uploader = make_uploader(store, signature=signed.json()["token"], chunk_size=300_000)
    await asyncio.to_thread(uploader.upload)
    rows = await admin.query("select owner_id, metadata ->> 'size' from storage.objects")
    assert rows == [[user, str(len(DATA))]]
    with pytest.raises(TusCommunicationError) as refused:
        await asyncio.to_thread(make_uploader(store, signature=signed.json()["token"], key="other").upload)
    assert refused.value.status_code == 400


async def test_policies_are_asked_each_time(store: StorageBackend):
    """Whoever may not insert is refused at once; whoever may no longer, at the next bytes."""
    await store.bucket()
    admin = await store.sql()
    token = store.token("7f4e8f4e-4d2c-4f0a-8a8e-0d6f4d3c2b1a")
    with pytest.raises(TusCommunicationError) as refused:
        await asyncio.to_thread(make_uploader(store, token=token).upload)
    assert refused.value.status_code == 403
    await admin.script("create policy w on storage.objects for insert with check (bucket_id = 'things')")
    uploader = make_uploader(store, token=token, chunk_size=300_000)
    await asyncio.to_thread(uploader.upload_chunk)
    await admin.script("drop policy w on storage.objects")
    with pytest.raises(TusCommunicationError) as refused:
        await asyncio.to_thread(uploader.upload)
    assert refused.value.status_code == 403
