"""Buckets: listed, made, asked about and deleted."""

from __future__ import annotations

from typing import Any

from toft.http.message import Response
from toft.storage import records
from toft.storage.access import run_as
from toft.storage.buckets import remove_bucket
from toft.storage.errors import StorageError, already_exists, no_such_bucket
from toft.storage.names import check_bucket_name
from toft.storage.records import BucketPage, as_uuid
from toft.storage.s3.call import S3Call
from toft.storage.s3.xml import xml_response

REGION = "local"


async def list_buckets(s3: S3Call) -> Response:
    """GET /"""
    found: list[dict[str, Any]] = await s3.fetch_json(s3.actor, records.list_buckets(s3.actor, BucketPage()))
    owner = s3.call.owner_id or "service"
    return xml_response(
        "ListAllMyBucketsResult",
        {
            "Buckets": {
                "Bucket": [{"Name": bucket["id"], "CreationDate": bucket["created_at"]} for bucket in found]
            },
            "Owner": {"ID": owner, "DisplayName": owner},
        },
    )


async def create_bucket(s3: S3Call) -> Response:
    """PUT /{bucket}"""
    await s3.read_xml_body()
    check_bucket_name(s3.bucket)
    owner = s3.call.owner_id
    values: dict[str, Any] = {
        "id": s3.bucket,
        "name": s3.bucket,
        "owner_id": owner,
        "owner": as_uuid(owner),
        "public": s3.header(b"x-amz-acl") == "public-read",
        "file_size_limit": None,
        "allowed_mime_types": None,
    }
    try:
        await run_as(s3.call, s3.actor, records.insert_bucket(s3.actor, values))
    except StorageError as error:
        if error.status == 409:
            raise already_exists("BucketAlreadyExists") from None
        raise
    return Response(200, [(b"location", f"/{s3.bucket}".encode())])


async def head_bucket(s3: S3Call) -> Response:
    """HEAD /{bucket}"""
    await require_bucket(s3)
    return Response(200, [(b"x-amz-bucket-region", REGION.encode()), (b"content-length", b"0")])


async def delete_bucket(s3: S3Call) -> Response:
    """DELETE /{bucket}"""
    await remove_bucket(s3.call, s3.actor, s3.bucket)
    return Response(204)


async def bucket_location(s3: S3Call) -> Response:
    """GET /{bucket}?location"""
    await require_bucket(s3)
    return xml_response("LocationConstraint", {})


async def bucket_versioning(s3: S3Call) -> Response:
    """GET /{bucket}?versioning"""
    await require_bucket(s3)
    return xml_response("VersioningConfiguration", {"Status": "Suspended", "MfaDelete": "Disabled"})


async def require_bucket(s3: S3Call) -> None:
    """Raise unless the caller sees the bucket."""
    [found] = await run_as(s3.call, s3.actor, records.load_bucket(s3.actor, s3.bucket))
    if not found.rows:
        raise no_such_bucket()
