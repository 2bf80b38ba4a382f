"""The spine of the S3 door: who asks, which operation it is, and what a refusal looks like."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import unquote

import msgspec

from toft.http.message import Request, Response
from toft.storage.call import Call
from toft.storage.context import StorageContext
from toft.storage.errors import StorageError, invalid_key
from toft.storage.s3 import buckets, listing, multipart, objects
from toft.storage.s3.call import S3Call
from toft.storage.s3.errors import no_operation, not_implemented, render_s3
from toft.storage.s3.form import post_form
from toft.storage.s3.who import prove
from toft.tokens.caller import Caller

PREFIX: Final = "/s3"

type Operate = Callable[[S3Call], Awaitable[Response]]


class Operation(msgspec.Struct, frozen=True):
    """One operation: how a request for it looks, and what `storage.operation()` says meanwhile.

    level: how much of BUCKET/KEY its path names. query: members that the query must have; copies: whether
    there must be a copy source.
    """

    level: int
    method: str
    query: tuple[str, ...]
    operate: Operate
    name: str
    copies: bool = False


def _row(line: str, operate: Operate, name: str, *, copies: bool = False) -> Operation:
    method, _, rest = line.partition(" ")
    path, _, query = rest.partition("?")
    level = path.strip("/").count("/") + 1 if path.strip("/") else 0
    members = tuple(query.split("&")) if query else ()
    return Operation(level, method, members, operate, f"storage.s3.{name}", copies)


#: the first that fits is meant
OPERATIONS: Final = (
    _row("GET /", buckets.list_buckets, "bucket.list"),
    _row("GET /BUCKET?location", buckets.bucket_location, "bucket.get_location"),
    _row("GET /BUCKET?versioning", buckets.bucket_versioning, "bucket.get_versioning"),
    _row("GET /BUCKET?uploads", multipart.list_uploads, "upload.list_multipart"),
    _row("GET /BUCKET?list-type", listing.list_objects_v2, "object.list"),
    _row("GET /BUCKET", listing.list_objects, "object.list"),
    _row("HEAD /BUCKET", buckets.head_bucket, "bucket.head"),
    _row("PUT /BUCKET", buckets.create_bucket, "bucket.create"),
    _row("DELETE /BUCKET", buckets.delete_bucket, "bucket.delete"),
    _row("POST /BUCKET?delete", objects.delete_many, "object.delete_many"),
    _row("GET /BUCKET/KEY?uploadId", multipart.list_parts, "upload.list_parts"),
    _row("GET /BUCKET/KEY?tagging", objects.tagging, "object.get_tagging"),
    _row("GET /BUCKET/KEY", objects.get, "object.get"),
    _row("HEAD /BUCKET/KEY", objects.get, "object.info"),
    _row("PUT /BUCKET/KEY?partNumber&uploadId", multipart.copy_part, "upload.part_copy", copies=True),
    _row("PUT /BUCKET/KEY?partNumber&uploadId", multipart.put_part, "upload.part"),
    _row("PUT /BUCKET/KEY", objects.copy, "object.copy", copies=True),
    _row("PUT /BUCKET/KEY", objects.put, "upload"),
    _row("POST /BUCKET/KEY?uploads", multipart.create, "upload.create_multipart"),
    _row("POST /BUCKET/KEY?uploadId", multipart.complete, "upload.complete_multipart"),
    _row("DELETE /BUCKET/KEY?uploadId", multipart.abort, "upload.abort_multipart"),
    _row("DELETE /BUCKET/KEY", objects.delete, "object.delete"),
)

#: members of a query that ask for something that is not there, and must not be taken for something else
_ABSENT: Final = frozenset(
    ("acl", "policy", "lifecycle", "versions", "website", "encryption", "object-lock", "select", "cors",
     "logging", "replication", "notification", "requestPayment", "accelerate", "tagging", "restore",
     "torrent", "legal-hold", "retention", "attributes", "policyStatus", "publicAccessBlock",
     "ownershipControls", "analytics", "inventory", "metrics", "intelligent-tiering")
)  # fmt: skip


class S3Door:
    """The S3 endpoint of one backend."""

    def __init__(self, context: StorageContext) -> None:
        self._context = context

    async def handle(self, request: Request, caller: Caller, path: str) -> Response:
        """Answer a request whose path begins with `PREFIX`."""
        bucket, _, key = path.removeprefix(PREFIX).removeprefix("/").partition("/")
        bucket, key = unquote(bucket), unquote(key)
        try:
            return await self._answer(request, caller, path, bucket, key)
        except StorageError as error:
            return render_s3(error, f"{bucket}/{key}" if key else bucket, request.method)

    async def _answer(self, request: Request, caller: Caller, path: str, bucket: str, key: str) -> Response:
        if "\0" in bucket + key:
            raise invalid_key(key)
        call = Call(self._context, request, caller, path, {"bucket": bucket, "key": key}, "")
        is_form = (call.header(b"content-type") or "").lower().startswith("multipart/form-data")
        if request.method == "POST" and bucket and not key and is_form:
            call.operation = "storage.s3.upload"
            return await post_form(call, bucket)
        proven = prove(self._context, request)
        call.caller = proven.caller
        operation = _find(call, 2 if key else 1 if bucket else 0)
        call.operation = operation.name
        return await operation.operate(S3Call(call, proven, bucket, key))


def _find(call: Call, level: int) -> Operation:
    is_copy = call.header(b"x-amz-copy-source") is not None
    for operation in OPERATIONS:
        if (
            operation.level == level
            and operation.method == call.request.method
            and all(member in call.query for member in operation.query)
            and is_copy >= operation.copies
        ):
            absent = _ABSENT & call.query.keys() - set(operation.query)
            if absent:
                raise not_implemented(min(absent))
            return operation
    raise no_operation(call.request.method)
