"""Objects: read, described, moved, copied and deleted as the caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec

from toft.http.message import Response
from toft.pg.wire import Result
from toft.storage import records
from toft.storage.access import probe, probe_move, run_as, run_in_turn
from toft.storage.blobs.store import Missing
from toft.storage.buckets import json_response, raw_json_response
from toft.storage.call import Call
from toft.storage.content import decode_user_metadata
from toft.storage.errors import (
    StorageError,
    access_denied,
    bytes_are_gone,
    invalid_request,
    no_such_bucket,
    no_such_key,
)
from toft.storage.fields import read_bool, read_object, read_text, require_text
from toft.storage.names import DEFAULT_TYPE, check_bucket_name, check_key
from toft.storage.records import SERVICE, Actor, ObjectRow
from toft.storage.serve import read_served, serve
from toft.storage.uploads import check_rules, describe_bytes, load_bucket_facts, publish, wants_upsert

type Json = dict[str, Any]

#: keys that one DELETE may name
MOST_TO_DELETE = 10_000
#: readers of an object that is replaced again and again
MOST_TRIES = 8


# Reading -----------------------------------------------------------------------------------------------


async def read_authenticated(call: Call) -> Response:
    """GET and HEAD /object/authenticated/{bucket}/{key}."""
    call.require_token()
    return await serve_found(call, find_readable)


async def read_tolerant(call: Call) -> Response:
    """GET and HEAD /object/{bucket}/{key}: without a good token, only what is public."""
    return await serve_found(call, find_readable)


async def read_public(call: Call) -> Response:
    """GET and HEAD /object/public/{bucket}/{key}."""
    return await serve_found(call, find_public)


async def info_authenticated(call: Call) -> Response:
    """GET and HEAD /object/info/authenticated/{bucket}/{key}."""
    call.require_token()
    return await _tell(call, find_readable)


async def info_tolerant(call: Call) -> Response:
    """GET and HEAD /object/info/{bucket}/{key}."""
    return await _tell(call, find_readable)


async def info_public(call: Call) -> Response:
    """GET and HEAD /object/info/public/{bucket}/{key}."""
    return await _tell(call, find_public)


async def _tell(call: Call, find: Callable[[Call], Awaitable[Json]]) -> Response:
    """What is known of an object; to HEAD, what a download would say."""
    if call.request.method == "HEAD":
        return await serve_found(call, find)
    return json_response(_describe(await find(call)))


async def serve_found(
    call: Call, find: Callable[[Call], Awaitable[Json]], *, expires_at: int | None = None
) -> Response:
    """Serve what was found, and look again when it was replaced before its bytes could be opened."""
    row = await find(call)
    for _ in range(MOST_TRIES):
        try:
            return await serve(call, read_served(row), expires_at=expires_at)
        except Missing:
            known, row = row["version"], await find(call)
            if row["version"] == known:
                break
    raise bytes_are_gone()


async def find_readable(call: Call) -> Json:
    """The row, if the bucket is public or the caller's policies show it."""
    bucket, key = call.path["bucket"], call.path["key"]
    look = (SERVICE, records.load_bucket_facts(bucket)), (SERVICE, records.load_object(SERVICE, bucket, key))
    if not call.has_token:
        facts, found = await run_in_turn(call, *look)
        if not _is_public(facts):
            raise no_such_bucket()
        return _only_row(found.rows)
    actor = call.actor
    own = actor, records.load_object(actor, bucket, key)
    try:
        facts, found, seen = await run_in_turn(call, *look, own)
    except StorageError:
        # a policy failed, which is no matter where no policy is asked
        facts, found = await run_in_turn(call, *look)
        if not _is_public(facts):
            raise
        return _only_row(found.rows)
    return _only_row((found if _is_public(facts) else seen).rows)


def _is_public(facts: Result) -> bool:
    return bool(facts.rows) and msgspec.json.decode(facts.rows[0][0] or b"{}")["public"]


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
        await load_as(call, actor, *source)
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
    original = await load_as(call, actor, *source)
    metadata: Json = dict(original["metadata"] or {})
    user_metadata: Json | None = original["user_metadata"]
    if not copies_metadata:
        user_metadata = decode_user_metadata(call.header(b"x-metadata"))
        for member in ("cacheControl", "mimetype"):
            given = read_text(changes, member)
            if given is not None:
                metadata[member] = given
    saved = await copy_object(
        call, actor, original, target, metadata, user_metadata, is_upsert=wants_upsert(call)
    )
    return json_response({"Id": saved["id"], "Key": "/".join(target), **saved})


async def copy_object(
    call: Call,
    actor: Actor,
    original: Json,
    target: tuple[str, str],
    metadata: Json,
    user_metadata: Json | None,
    *,
    is_upsert: bool,
) -> Json:
    """Give the bytes of a row a second one, by the rules of the target's bucket. The new row's JSON."""
    facts = await load_bucket_facts(call, target[0])
    kind, size = metadata.get("mimetype"), metadata.get("size")
    check_rules(
        call, facts, target[1],
        kind if isinstance(kind, str) else DEFAULT_TYPE,
        size if isinstance(size, int) else None,
    )  # fmt: skip
    row = ObjectRow(
        bucket=target[0],
        key=target[1],
        version="1",
        owner_id=call.owner_id,
        metadata=metadata,
        user_metadata=user_metadata,
    )
    await probe(call, actor, row, is_upsert=is_upsert)
    version = call.context.new_version()
    changed = {**metadata, "lastModified": describe_bytes(call, "", 0)["lastModified"]}
    for _ in range(MOST_TRIES):
        try:
            await call.context.blobs.copy(original["version"], version)
            break
        except Missing:
            known = original["version"]
            original = await load_as(call, actor, original["bucket_id"], original["name"])
            if original["version"] == known:
                raise bytes_are_gone() from None
    else:
        raise bytes_are_gone()
    return await publish(call, msgspec.structs.replace(row, version=version, metadata=changed))


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


async def load_as(call: Call, actor: Actor, bucket: str, key: str) -> Json:
    """The row of an object, if the actor sees it."""
    [found] = await run_as(call, actor, records.load_object(actor, bucket, key))
    return _only_row(found.rows)


def _only_row(rows: list[list[bytes | None]]) -> Json:
    if not rows:
        raise no_such_key()
    return cast("Json", msgspec.json.decode(rows[0][0] or b"{}"))
