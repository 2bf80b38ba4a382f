"""Signed URLs: made as the caller, used by whoever has them."""

from __future__ import annotations

from typing import Any

from toft.http.message import Response
from toft.storage import records
from toft.storage.access import probe, run_as
from toft.storage.buckets import json_response
from toft.storage.call import Call
from toft.storage.content import Upload
from toft.storage.errors import invalid_request, no_such_key
from toft.storage.fields import read_object, read_texts, require_int
from toft.storage.images.transformation import read_transformation, write_claim
from toft.storage.names import check_bucket_name, check_key
from toft.storage.objects import load_as, serve_found
from toft.storage.records import SERVICE, ObjectRow
from toft.storage.signing import Grant, open_grant, sign
from toft.storage.uploads import load_bucket_facts, put_object, wants_upsert

UPLOAD_SECONDS = 2 * 3600
MOST_TO_SIGN = 1000

_ABSENT = "Either the object does not exist or you do not have access to it"


async def sign_download(call: Call) -> Response:
    """POST /object/sign/{bucket}/{key}."""
    actor = call.require_token()
    body = await call.read_body()
    seconds = require_int(body, "expiresIn", least=1)
    transform = {**read_object(body, "transform")}
    transformations = write_claim(read_transformation(transform, "body/transform"))
    bucket, key = call.path["bucket"], call.path["key"]
    [found] = await run_as(call, actor, records.find_objects(actor, bucket, [key]))
    if not found.rows:
        raise no_such_key()
    return json_response({"signedURL": _sign(call, bucket, key, seconds, transformations)})


async def sign_downloads(call: Call) -> Response:
    """POST /object/sign/{bucket}: many at once; what is missing is said beside its path."""
    actor = call.require_token()
    body = await call.read_body()
    seconds = require_int(body, "expiresIn", least=1)
    paths = read_texts(body, "paths")
    if not paths:
        raise invalid_request("body/paths must NOT have fewer than 1 items")
    if len(paths) > MOST_TO_SIGN:
        raise invalid_request(f"body/paths must NOT have more than {MOST_TO_SIGN} items")
    bucket = call.path["bucket"]
    [found] = await run_as(call, actor, records.find_objects(actor, bucket, paths))
    known = {row[0].decode() for row in found.rows if row[0] is not None}
    return json_response(
        [
            {
                "error": None if path in known else _ABSENT,
                "path": path,
                "signedURL": _sign(call, bucket, path, seconds, "") if path in known else None,
            }
            for path in paths
        ]
    )


async def read_signed(call: Call) -> Response:
    """GET /object/sign/{bucket}/{key}?token=…"""
    return await serve_found(call, find_signed, expires_at=open_download(call).expires_at)


def open_download(call: Call) -> Grant:
    """What the token in the query allows. Raises `StorageError`."""
    bucket, key = call.path["bucket"], call.path["key"]
    now = call.context.clock.unix()
    return open_grant(call.context.ring, _read_token(call), bucket, key, "download", now)


async def find_signed(call: Call) -> dict[str, Any]:
    """The row of an object whose reader has shown a token for it."""
    return await load_as(call, SERVICE, call.path["bucket"], call.path["key"])


async def sign_upload(call: Call) -> Response:
    """POST /object/upload/sign/{bucket}/{key}: the right to write it is asked now."""
    actor = call.require_token()
    bucket, key = call.path["bucket"], call.path["key"]
    check_bucket_name(bucket)
    check_key(key)
    await load_bucket_facts(call, bucket)
    is_upsert = wants_upsert(call)
    row = ObjectRow(
        bucket=bucket, key=key, version="1", owner_id=call.owner_id, metadata=None, user_metadata=None
    )
    await probe(call, actor, row, is_upsert=is_upsert)
    now = call.context.clock.unix()
    grant = Grant(
        bucket=bucket,
        key=key,
        scope="upload",
        expires_at=int(now) + UPLOAD_SECONDS,
        is_upsert=is_upsert,
        owner=call.owner_id,
    )
    token = sign(call.context.ring, grant, now)
    return json_response({"url": f"/object/upload/sign/{bucket}/{key}?token={token}", "token": token})


async def upload_signed(call: Call) -> Response:
    """PUT /object/upload/sign/{bucket}/{key}?token=…"""
    bucket, key = call.path["bucket"], call.path["key"]
    now = call.context.clock.unix()
    grant = open_grant(call.context.ring, _read_token(call), bucket, key, "upload", now)
    await put_object(call, None, (bucket, key), grant.owner, Upload(call), is_upsert=grant.is_upsert)
    return json_response({"Key": f"{bucket}/{key}"})


def _sign(call: Call, bucket: str, key: str, seconds: int, transformations: str) -> str:
    now = call.context.clock.unix()
    grant = Grant(
        bucket=bucket,
        key=key,
        scope="download",
        expires_at=int(now) + seconds,
        transformations=transformations,
    )
    place = "render/image" if transformations else "object"
    return f"/{place}/sign/{bucket}/{key}?token={sign(call.context.ring, grant, now)}"


def _read_token(call: Call) -> str:
    token = call.query.get("token")
    if not token:
        raise invalid_request("querystring must have required property 'token'")
    return token
