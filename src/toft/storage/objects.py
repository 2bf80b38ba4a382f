"""Objects: uploaded, read, described, moved, copied and deleted as the caller."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from toft.http.message import Response
from toft.storage import records
from toft.storage.access import probe, probe_move, run_as, save
from toft.storage.blobs.store import Missing, NoRoom, TooLarge, Written
from toft.storage.buckets import json_response, raw_json_response
from toft.storage.call import Call
from toft.storage.content import Upload, decode_user_metadata
from toft.storage.errors import (
    access_denied,
    bytes_are_gone,
    disk_full,
    invalid_request,
    no_such_bucket,
    no_such_key,
    too_large,
)
from toft.storage.fields import read_bool, read_object, read_text, require_text
from toft.storage.names import check_bucket_name, check_key, check_type, is_folder_mark, smaller_limit
from toft.storage.records import SERVICE, Actor, ObjectRow
from toft.storage.serve import read_served, serve

type Json = dict[str, Any]

#: keys that one DELETE may name
MOST_TO_DELETE = 10_000


# Uploading ---------------------------------------------------------------------------------------------


async def upload(call: Call) -> Response:
    """POST /object/{bucket}/{key}: create, or replace with `x-upsert: true`."""
    return await _upload(call, is_upsert=wants_upsert(call))


async def replace(call: Call) -> Response:
    """PUT /object/{bucket}/{key}: create or replace."""
    return await _upload(call, is_upsert=True)


async def _upload(call: Call, *, is_upsert: bool) -> Response:
    actor = call.require_token()
    bucket, key = call.path["bucket"], call.path["key"]
    saved = await put_object(call, actor, bucket, key, call.owner_id, is_upsert=is_upsert)
    return json_response({"Id": saved["id"], "Key": f"{bucket}/{key}"})


async def put_object(
    call: Call, actor: Actor | None, bucket: str, key: str, owner_id: str | None, *, is_upsert: bool
) -> Json:
    """Permission first, then bytes, then the row: nothing is visible before the end.

    actor: whose rights are asked; None when they were asked before, as with a signed URL.
    """
    check_bucket_name(bucket)
    check_key(key)
    facts = await load_bucket_facts(call, bucket)
    received = Upload(call)
    await received.open()
    limit = smaller_limit(facts["file_size_limit"], call.context.settings.file_size_limit_bytes)
    if is_folder_mark(key):
        limit = 0
    else:
        check_type(received.content_type, facts["allowed_mime_types"])
        if received.declared_bytes is not None and _is_surely_too_large(received, limit):
            raise too_large()
    row = ObjectRow(
        bucket=bucket,
        key=key,
        version="1",
        owner_id=owner_id,
        metadata=received.probed_metadata,
        user_metadata=received.user_metadata or {},
    )
    await probe(call, actor or SERVICE, row, is_upsert=is_upsert)
    version = call.context.new_version()
    written = await _write(call, version, received, limit)
    try:
        await received.finish()
        row = msgspec.structs.replace(
            row,
            version=version,
            metadata=make_metadata(call, written, received),
            user_metadata=received.user_metadata or {},
        )
        saved, replaced = await save(call, row)
    except BaseException:
        await call.context.blobs.delete([version])
        raise
    if replaced is not None:
        await call.context.blobs.delete([replaced])
    return cast("Json", msgspec.json.decode(saved))


async def _write(call: Call, version: str, received: Upload, limit: int) -> Written:
    try:
        return await call.context.blobs.write(version, received.chunks, limit)
    except TooLarge:
        raise too_large() from None
    except NoRoom:
        raise disk_full() from None


def _is_surely_too_large(received: Upload, limit: int) -> bool:
    """A form's length counts its other parts too, so that only the excess over them is certain."""
    assert received.declared_bytes is not None  # noqa: S101  (the caller looked)
    return received.declared_bytes > limit + received.overhead_bytes


def make_metadata(call: Call, written: Written, received: Upload) -> Json:
    """What a row remembers of its bytes; names and values are a contract."""
    now = call.context.clock.now()
    metadata: Json = {
        "eTag": f'"{written.md5}"',
        "size": written.size,
        "mimetype": received.content_type,
        "cacheControl": received.cache_control,
        "lastModified": now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03}Z",
        "contentLength": written.size,
        "httpStatusCode": 200,
    }
    if received.robots is not None:
        metadata["xRobotsTag"] = received.robots
    return metadata


def wants_upsert(call: Call) -> bool:
    """Whether the request may replace what is there."""
    return (call.header(b"x-upsert") or "").lower() == "true"


# Reading -----------------------------------------------------------------------------------------------


async def read_authenticated(call: Call) -> Response:
    """GET and HEAD /object/authenticated/{bucket}/{key}."""
    call.require_token()
    return await serve(call, read_served(await find_readable(call)))


async def read_tolerant(call: Call) -> Response:
    """GET and HEAD /object/{bucket}/{key}: without a good token, only what is public."""
    return await serve(call, read_served(await find_readable(call)))


async def read_public(call: Call) -> Response:
    """GET and HEAD /object/public/{bucket}/{key}."""
    return await serve(call, read_served(await find_public(call)))


async def info_authenticated(call: Call) -> Response:
    """GET /object/info/authenticated/{bucket}/{key}."""
    call.require_token()
    return json_response(_describe(await find_readable(call)))


async def info_tolerant(call: Call) -> Response:
    """GET /object/info/{bucket}/{key}."""
    return json_response(_describe(await find_readable(call)))


async def info_public(call: Call) -> Response:
    """GET /object/info/public/{bucket}/{key}."""
    return json_response(_describe(await find_public(call)))


async def find_readable(call: Call) -> Json:
    """The row, if the bucket is public or the caller's policies show it."""
    bucket, key = call.path["bucket"], call.path["key"]
    facts, found = await run_as(
        call, SERVICE, records.load_bucket_facts(bucket), records.load_object(SERVICE, bucket, key)
    )
    is_public = bool(facts.rows) and msgspec.json.decode(facts.rows[0][0] or b"{}")["public"]
    if not is_public:
        if not call.has_token:
            raise no_such_bucket()
        actor = call.actor
        [found] = await run_as(call, actor, records.load_object(actor, bucket, key))
    return _only_row(found.rows)


async def find_public(call: Call) -> Json:
    """The row, if the bucket is public."""
    bucket, key = call.path["bucket"], call.path["key"]
    facts, found = await run_as(
        call, SERVICE, records.load_bucket_facts(bucket), records.load_object(SERVICE, bucket, key)
    )
    if not facts.rows or not msgspec.json.decode(facts.rows[0][0] or b"{}")["public"]:
        raise no_such_bucket()
    return _only_row(found.rows)


def _describe(row: Json) -> Json:
    served = read_served(row)
    return {
        "id": row["id"],
        "name": row["name"],
        "version": row["version"],
        "bucket_id": row["bucket_id"],
        "size": served.size,
        "content_type": served.content_type,
        "cache_control": served.cache_control,
        "etag": served.etag,
        "metadata": row["user_metadata"],
        "last_modified": row["updated_at"],
        "created_at": row["created_at"],
    }


# Moving, copying, deleting -----------------------------------------------------------------------------


async def move(call: Call) -> Response:
    """POST /object/move: the row changes its name; the bytes stay where they are."""
    actor = call.require_token()
    body = await call.read_body()
    source, target = _read_pair(body)
    if source == target:
        await _load_as(call, actor, *source)
        return json_response({"message": "Successfully moved"})
    await load_bucket_facts(call, target[0])
    if not await probe_move(call, actor, source, target):
        raise no_such_key()
    owner = call.owner_id
    moved = records.move_object(SERVICE, source, target, owner, records.as_uuid(owner))
    [found] = await run_as(call, SERVICE, moved)
    if not found.rows:
        raise no_such_key()
    return json_response({"message": "Successfully moved"})


async def copy(call: Call) -> Response:
    """POST /object/copy: another row, and another name for the same bytes."""
    actor = call.require_token()
    body = await call.read_body()
    source, target = _read_pair(body)
    changes = read_object(body, "metadata")
    copies_metadata = read_bool(body, "copyMetadata") is not False
    original = await _load_as(call, actor, *source)
    facts = await load_bucket_facts(call, target[0])
    metadata: Json = dict(original["metadata"] or {})
    user_metadata: Json | None = original["user_metadata"]
    if not copies_metadata:
        user_metadata = decode_user_metadata(call.header(b"x-metadata"))
        for member in ("cacheControl", "mimetype"):
            given = read_text(changes, member)
            if given is not None:
                metadata[member] = given
    _check_copy(call, facts, metadata)
    row = ObjectRow(
        bucket=target[0],
        key=target[1],
        version="1",
        owner_id=call.owner_id,
        metadata=metadata,
        user_metadata=user_metadata,
    )
    await probe(call, actor, row, is_upsert=wants_upsert(call))
    version = call.context.new_version()
    now = call.context.clock.now()
    metadata["lastModified"] = now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03}Z"
    try:
        await call.context.blobs.copy(original["version"], version)
        saved, replaced = await save(call, msgspec.structs.replace(row, version=version, metadata=metadata))
    except Missing:
        raise bytes_are_gone() from None
    except BaseException:
        await call.context.blobs.delete([version])
        raise
    if replaced is not None:
        await call.context.blobs.delete([replaced])
    answer: Json = msgspec.json.decode(saved)
    return json_response({"Id": answer["id"], "Key": "/".join(target), **answer})


def _check_copy(call: Call, facts: Json, metadata: Json) -> None:
    """The target bucket's rules hold for copies as well."""
    kind, size = metadata.get("mimetype"), metadata.get("size")
    if isinstance(kind, str):
        check_type(kind, facts["allowed_mime_types"])
    limit = smaller_limit(facts["file_size_limit"], call.context.settings.file_size_limit_bytes)
    if isinstance(size, int) and size > limit:
        raise too_large()


async def delete_one(call: Call) -> Response:
    """DELETE /object/{bucket}/{key}."""
    actor = call.require_token()
    bucket, key = call.path["bucket"], call.path["key"]
    [known] = await run_as(call, SERVICE, records.load_version(bucket, key))
    if not known.rows:
        raise no_such_key()
    [deleted] = await run_as(call, actor, records.delete_object(actor, bucket, key))
    if not deleted.rows:
        raise access_denied()
    await _forget(call, deleted.rows[0][0])
    return json_response({"message": "Successfully deleted"})


async def delete_many(call: Call) -> Response:
    """DELETE /object/{bucket}: exact names; what is unknown or forbidden is just absent from the answer."""
    actor = call.require_token()
    body = await call.read_body()
    given = body.get("prefixes")
    if given is None:
        raise invalid_request("body must have required property 'prefixes'")
    keys = cast("list[object]", given) if isinstance(given, list) else None
    if keys is None or not all(isinstance(key, str) for key in keys):
        raise invalid_request("body/prefixes must be array")
    if not keys:
        raise invalid_request("body/prefixes must NOT have fewer than 1 items")
    if len(keys) > MOST_TO_DELETE:
        raise invalid_request(f"body/prefixes must NOT have more than {MOST_TO_DELETE} items")
    names = [key for key in cast("list[str]", keys) if "\0" not in key]
    [deleted] = await run_as(call, actor, records.delete_objects(actor, call.path["bucket"], names))
    versions = [row[1].decode() for row in deleted.rows if row[1] is not None]
    await call.context.blobs.delete(versions)
    return raw_json_response(b"[" + b",".join(row[0] or b"null" for row in deleted.rows) + b"]")


async def _forget(call: Call, version: bytes | None) -> None:
    if version is not None:
        await call.context.blobs.delete([version.decode()])


def _read_pair(body: Json) -> tuple[tuple[str, str], tuple[str, str]]:
    bucket = require_text(body, "bucketId")
    source = require_text(body, "sourceKey")
    target = require_text(body, "destinationKey")
    target_bucket = read_text(body, "destinationBucket") or bucket
    check_bucket_name(target_bucket)
    return (bucket, source), (target_bucket, check_key(target))


# Rows --------------------------------------------------------------------------------------------------


async def load_bucket_facts(call: Call, bucket: str) -> Json:
    """What the service has to know of a bucket, whoever asks."""
    [found] = await run_as(call, SERVICE, records.load_bucket_facts(bucket))
    if not found.rows:
        raise no_such_bucket()
    return cast("Json", msgspec.json.decode(found.rows[0][0] or b"{}"))


async def _load_as(call: Call, actor: Actor, bucket: str, key: str) -> Json:
    [found] = await run_as(call, actor, records.load_object(actor, bucket, key))
    return _only_row(found.rows)


def _only_row(rows: list[list[bytes | None]]) -> Json:
    if not rows:
        raise no_such_key()
    return cast("Json", msgspec.json.decode(rows[0][0] or b"{}"))
