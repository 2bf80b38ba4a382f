"""Buckets: made, read, listed, changed, emptied and deleted as the caller."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from toft.http.message import Response
from toft.storage import records
from toft.storage.access import pipeline, run_as
from toft.storage.call import Call
from toft.storage.errors import (
    StorageError,
    already_exists,
    bucket_not_empty,
    feature_not_enabled,
    invalid_parameter,
    invalid_request,
    no_such_bucket,
    too_large,
    unsupported_type,
    wrong_role,
)
from toft.storage.fields import read_bool, read_int, read_text, read_texts, require_text
from toft.storage.names import check_bucket_name, is_type_rule, parse_size
from toft.storage.records import BUCKET_SORT_COLUMNS, SERVICE, Actor, BucketPage, as_uuid

#: emptying more at once would hold everybody up
MOST_TO_EMPTY = 200_000

_JSON = (b"content-type", b"application/json; charset=utf-8")
_OLDER_PYTHON = re.compile(
    r"supabase-py/(?:[01]\.|2\.(?:[0-9]|1[0-7])\.)|storage3/0\.(?:[0-9]|10|11|12\.0)\.?"
)


async def create_bucket(call: Call) -> Response:
    """POST /bucket."""
    actor = call.require_token()
    body = await call.read_body()
    name = require_text(body, "name")
    bucket_id = read_text(body, "id") or name
    check_bucket_name(name)
    check_bucket_name(bucket_id)
    if read_text(body, "type") not in (None, "STANDARD"):
        raise feature_not_enabled("iceberg_catalog")
    values: dict[str, Any] = {
        "id": bucket_id,
        "name": name,
        "owner_id": call.owner_id,
        "owner": as_uuid(call.owner_id),
        "public": read_bool(body, "public") or False,
        **_limits(call, body),
    }
    try:
        await run_as(call, actor, records.insert_bucket(actor, values))
    except StorageError as error:
        if error.status == 409:
            raise already_exists("BucketAlreadyExists") from None
        raise
    return json_response({"name": name})


async def read_bucket(call: Call) -> Response:
    """GET /bucket/{bucket}."""
    actor = call.require_token()
    [found] = await run_as(call, actor, records.load_bucket(actor, call.path["bucket"]))
    if not found.rows:
        raise no_such_bucket()
    return raw_json_response(found.rows[0][0])


async def list_buckets(call: Call) -> Response:
    """GET /bucket."""
    actor = call.require_token()
    query = call.query
    column = query.get("sortColumn") or "id"
    order = query.get("sortOrder") or "asc"
    if column not in BUCKET_SORT_COLUMNS:
        raise invalid_request("querystring/sortColumn must be equal to one of the allowed values")
    if order not in ("asc", "desc"):
        raise invalid_request("querystring/sortOrder must be equal to one of the allowed values")
    agent = f"{call.header(b'x-client-info') or ''} {call.header(b'user-agent') or ''}"
    page = BucketPage(
        sort_column=column,
        descends=order == "desc",
        limit=read_int(query, "limit", least=1, where="querystring"),
        offset=read_int(query, "offset", least=0, where="querystring") or 0,
        search=query.get("search", "").replace("\0", ""),
        shows_type=_OLDER_PYTHON.search(agent) is None,
    )
    [found] = await run_as(call, actor, records.list_buckets(actor, page))
    return raw_json_response(found.rows[0][0])


async def update_bucket(call: Call) -> Response:
    """PUT /bucket/{bucket}: what is not mentioned stays; null clears."""
    actor = call.require_token()
    body = await call.read_body()
    if not {"public", "file_size_limit", "allowed_mime_types"} & set(body):
        raise invalid_request("body must have at least one of public, file_size_limit, allowed_mime_types")
    changes = _limits(call, body)
    if read_bool(body, "public") is not None:
        changes["public"] = read_bool(body, "public")
    [found] = await run_as(call, actor, records.update_bucket(actor, call.path["bucket"], changes))
    if not found.rows:
        raise no_such_bucket()
    return json_response({"message": "Successfully updated"})


async def empty_bucket(call: Call) -> Response:
    """POST /bucket/{bucket}/empty. Done before the answer, which keeps upstream's words."""
    call.require_token()
    if call.caller.role != "service_role":
        raise wrong_role()
    bucket = call.path["bucket"]
    found, count = await run_as(
        call, SERVICE, records.load_bucket_facts(bucket), records.count_objects(bucket, MOST_TO_EMPTY + 1)
    )  # fmt: skip
    if not found.rows:
        raise no_such_bucket()
    if int(count.rows[0][0] or 0) > MOST_TO_EMPTY:
        raise invalid_parameter(f"the bucket has more than {MOST_TO_EMPTY} objects")
    [deleted] = await run_as(call, SERVICE, records.delete_all_objects(bucket))
    await call.context.blobs.delete([row[0].decode() for row in deleted.rows if row[0] is not None])
    return json_response({"message": "Empty bucket has been queued. Completion may take up to an hour."})


async def delete_bucket(call: Call) -> Response:
    """DELETE /bucket/{bucket}: only an empty one."""
    actor = call.require_token()
    await remove_bucket(call, actor, call.path["bucket"])
    return json_response({"message": "Successfully deleted"})


async def remove_bucket(call: Call, actor: Actor, bucket: str) -> None:
    """Delete a bucket that has no objects. Raises `StorageError`."""
    async with call.context.pool.lend() as conn:
        await conn.script("begin")
        try:
            [locked] = await pipeline(call, conn, SERVICE, [records.lock_bucket(bucket)])
            if not locked.rows:
                raise no_such_bucket()
            if locked.rows[0][1] == b"t":
                raise bucket_not_empty()
            [deleted] = await pipeline(call, conn, actor, [records.delete_bucket(actor, bucket)])
            if not deleted.rows:
                raise no_such_bucket()
            await conn.script("commit")
        except StorageError:
            await conn.script("rollback")
            raise


def json_response(body: object, status: int = 200) -> Response:
    """An answer with a JSON body."""
    return Response(status, [_JSON], msgspec.json.encode(body))


def raw_json_response(body: bytes | None) -> Response:
    """An answer whose JSON the database has written."""
    return Response(200, [_JSON], body or b"null")


def _limits(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    """The members that limit what a bucket takes, as far as they are given."""
    limits: dict[str, Any] = {}
    if "file_size_limit" in body:
        limits["file_size_limit"] = _read_size(call, body["file_size_limit"])
    if "allowed_mime_types" in body:
        rules = [rule for rule in read_texts(body, "allowed_mime_types") or [] if rule]
        for rule in rules:
            if not is_type_rule(rule):
                raise unsupported_type(rule)
        limits["allowed_mime_types"] = rules or None
    return limits


def _read_size(call: Call, given: object) -> int | None:
    if given is None or given == "":
        return None
    size = parse_size(given) if isinstance(given, str) else given
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise invalid_request("body/file_size_limit must be a size in bytes, or a text like 20mb")
    if size > call.context.settings.file_size_limit_bytes:
        raise too_large()
    return size
