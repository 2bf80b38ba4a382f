"""Uploads: permission first, then bytes, then the row, so that nothing is visible before the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Protocol, cast

import msgspec

from toft.http.message import Response
from toft.storage import records
from toft.storage.access import probe, probe_with_facts, run_as, save
from toft.storage.blobs.store import NoRoom, TooLarge, Written
from toft.storage.buckets import json_response
from toft.storage.call import Call
from toft.storage.content import Upload
from toft.storage.errors import StorageError, disk_full, no_such_bucket, too_large
from toft.storage.names import check_bucket_name, check_key, check_type, is_folder_mark, smaller_limit
from toft.storage.records import SERVICE, Actor, ObjectRow

type Json = dict[str, Any]

#: what goes on although nobody may be waiting for it any more
_publishing: set[asyncio.Task[Json]] = set()


class Incoming(Protocol):
    """What is uploaded, however it came. declared_bytes: None when the client did not say how many.

    overhead_bytes: how much of that may be something else than the object.
    """

    @property
    def content_type(self) -> str: ...
    @property
    def cache_control(self) -> str: ...
    @property
    def user_metadata(self) -> Json | None: ...
    @property
    def robots(self) -> str | None: ...
    @property
    def declared_bytes(self) -> int | None: ...
    @property
    def overhead_bytes(self) -> int: ...
    @property
    def chunks(self) -> AsyncIterator[bytes]: ...

    async def open(self) -> None:
        """Read as far as the first byte of the object."""
        ...

    async def finish(self) -> None:
        """All bytes are there: read, and check, what may come after them."""
        ...


async def upload(call: Call) -> Response:
    """POST /object/{bucket}/{key}: create, or replace with `x-upsert: true`."""
    return await _upload(call, is_upsert=wants_upsert(call))


async def replace(call: Call) -> Response:
    """PUT /object/{bucket}/{key}: create or replace."""
    return await _upload(call, is_upsert=True)


async def _upload(call: Call, *, is_upsert: bool) -> Response:
    actor = call.require_token()
    bucket, key = call.path["bucket"], call.path["key"]
    saved = await put_object(call, actor, (bucket, key), call.owner_id, Upload(call), is_upsert=is_upsert)
    return json_response({"Id": saved["id"], "Key": f"{bucket}/{key}"})


async def put_object(
    call: Call,
    actor: Actor | None,
    place: tuple[str, str],
    owner_id: str | None,
    received: Incoming,
    *,
    is_upsert: bool,
) -> Json:
    """Take an upload in, and its row's JSON.

    actor: whose rights are asked; None when they were asked before, as with a signed URL. place: bucket and
    key.
    """
    bucket, key = place
    check_bucket_name(bucket)
    check_key(key)
    await received.open()
    row = ObjectRow(
        bucket=bucket,
        key=key,
        version="1",
        owner_id=owner_id,
        metadata=probed_metadata(received.content_type, received.declared_bytes),
        user_metadata=received.user_metadata or {},
    )
    raw = await probe_with_facts(call, actor or SERVICE, row, is_upsert=is_upsert)
    facts = cast("Json", msgspec.json.decode(raw)) if raw else await load_bucket_facts(call, bucket)
    limit = check_rules(call, facts, key, received.content_type, _least_size(received))
    if raw is None:
        await probe(call, actor or SERVICE, row, is_upsert=is_upsert)
    version = call.context.new_version()
    written = await _write(call, version, received, limit)
    try:
        await received.finish()
    except BaseException:
        await call.context.blobs.delete([version])
        raise
    row = msgspec.structs.replace(
        row,
        version=version,
        metadata=make_metadata(call, written, received),
        user_metadata=received.user_metadata or {},
    )
    return await publish(call, row)


async def publish(call: Call, row: ObjectRow) -> Json:
    """Make an object visible whose bytes are there, and its row's JSON.

    Goes to its end even when the client has gone: a commit may have happened that nobody heard of. For the
    same reason the bytes go only when the database has refused the row; a sweeper finds those of no row.
    """
    task = asyncio.ensure_future(_publish(call, row))
    _publishing.add(task)
    task.add_done_callback(_publishing.discard)
    return await asyncio.shield(task)


async def _publish(call: Call, row: ObjectRow) -> Json:
    try:
        saved, replaced = await save(call, row)
    except StorageError:
        await call.context.blobs.delete([row.version])
        raise
    if replaced is not None and replaced != row.version:
        await call.context.blobs.delete([replaced])
    return cast("Json", msgspec.json.decode(saved))


def check_rules(call: Call, facts: Json, key: str, content_type: str, size: int | None) -> int:
    """The largest size that the bucket takes. Raises when its rules forbid the type or the known size."""
    limit = smaller_limit(facts["file_size_limit"], call.context.settings.file_size_limit_bytes)
    if is_folder_mark(key):
        return 0
    check_type(content_type, facts["allowed_mime_types"])
    if size is not None and size > limit:
        raise too_large()
    return limit


def probed_metadata(content_type: str, declared_bytes: int | None) -> Json:
    """What policies may look at before any byte is kept."""
    metadata: Json = {"mimetype": content_type}
    if declared_bytes is not None:
        metadata["contentLength"] = declared_bytes
    return metadata


def make_metadata(call: Call, written: Written, received: Incoming) -> Json:
    """What a row remembers of its bytes."""
    metadata = describe_bytes(call, f'"{written.md5}"', written.size)
    metadata |= {"mimetype": received.content_type, "cacheControl": received.cache_control}
    if received.robots is not None:
        metadata["xRobotsTag"] = received.robots
    return metadata


def describe_bytes(call: Call, etag: str, size: int) -> Json:
    """The members of a row's metadata; names and values are a contract. Type and cache rule are missing."""
    now = call.context.clock.now()
    return {
        "eTag": etag,
        "size": size,
        "mimetype": "",
        "cacheControl": "",
        "lastModified": now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03}Z",
        "contentLength": size,
        "httpStatusCode": 200,
    }


async def load_bucket_facts(call: Call, bucket: str) -> Json:
    """What the service has to know of a bucket, whoever asks."""
    [found] = await run_as(call, SERVICE, records.load_bucket_facts(bucket))
    if not found.rows:
        raise no_such_bucket()
    return cast("Json", msgspec.json.decode(found.rows[0][0] or b"{}"))


def wants_upsert(call: Call) -> bool:
    """Whether the request may replace what is there."""
    return (call.header(b"x-upsert") or "").lower() == "true"


async def _write(call: Call, version: str, received: Incoming, limit: int) -> Written:
    try:
        return await call.context.blobs.write(version, received.chunks, limit)
    except TooLarge:
        raise too_large() from None
    except NoRoom:
        raise disk_full() from None


def _least_size(received: Incoming) -> int | None:
    """A form's length counts its other parts too, so that only the excess over them is certain."""
    if received.declared_bytes is None:
        return None
    return received.declared_bytes - received.overhead_bytes
