"""What nobody will ask for is cleared away; what somebody may still ask for is not."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator

from tests.kit.fix_storage import StorageBackend
from toft.storage.sweep import EVERY_SECONDS, GRACE_SECONDS, UPLOAD_SECONDS, Swept, sweep


async def some(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def test_bytes_without_a_row(store: StorageBackend):
    """As a crash leaves them, or SQL: young ones stay, old ones go, objects and parts of uploads stay."""
    await store.bucket()
    await store.call("POST /object/things/kept", content=b"kept")
    await store.call("POST /object/things/gone", content=b"gone")
    await store.context.blobs.write("ab-orphan", some(b"x"), 10)
    await store.context.blobs.write("ab-part", some(b"x"), 10)
    admin = await store.sql("supabase_storage_admin")
    await admin.script(
        "insert into storage.s3_multipart_uploads (id, upload_signature, bucket_id, key, version)"
        " values ('u', '', 'things', 'k', 'u');"
        "insert into storage.s3_multipart_uploads_parts"
        " (upload_id, part_number, bucket_id, key, etag, version)"
        " values ('u', 1, 'things', 'k', 'e', 'ab-part');"
        "begin; set local storage.allow_delete_query to 'true';"
        "delete from storage.objects where name = 'gone'; commit"
    )
    assert await sweep(store.context) == Swept()
    store.clock.turn(seconds=GRACE_SECONDS + 60)
    assert await sweep(store.context) == Swept(versions=2)
    assert (await store.call("GET /object/things/kept", token=store.token("", role="service_role"))).content
    assert sorted(path.name for path in store.files() if "ab-" in path.name) == ["ab-part"]
    await admin.script("update storage.s3_multipart_uploads set created_at = now() - interval '2 days'")
    assert await sweep(store.context) == Swept(versions=1, uploads=1)
    assert len(store.files()) == 1


async def test_uploads_that_were_given_up(store: StorageBackend):
    """A resumable upload that nobody went on with goes when its time is over."""
    await store.bucket()
    assert store.http is not None
    fields = {"bucketName": "things", "objectName": "a"}
    made = await store.http.post(
        f"{store.url}/upload/resumable",
        headers={
            "authorization": f"Bearer {store.keys.service_role_key}",
            "tus-resumable": "1.0.0",
            "upload-length": "10",
            "upload-metadata": ",".join(
                f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in fields.items()
            ),
        },
    )
    assert made.status_code == 201
    store.clock.turn(seconds=GRACE_SECONDS * 2)
    assert await sweep(store.context) == Swept()
    store.clock.turn(seconds=UPLOAD_SECONDS)
    assert await sweep(store.context) == Swept(drafts=1)
    assert store.files() == []


async def test_it_happens_by_itself(store: StorageBackend):
    """Use is what brings it about, at most once an hour."""
    await store.bucket()
    await store.context.blobs.write("ab-orphan", some(b"x"), 10)
    mono = store.clock.mono
    store.clock.turn(seconds=GRACE_SECONDS + 60)
    await store.call("GET /status")
    assert len(store.files()) == 1
    store.clock.mono = lambda: mono() + EVERY_SECONDS  # type: ignore[method-assign]
    await store.call("GET /status")
    async with asyncio.timeout(20):
        while store.files():
            await asyncio.sleep(0.01)
