"""Objects: put, got, asked about, copied and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, cast
from urllib.parse import unquote

import msgspec

from toft.http.message import Response
from toft.storage import records as base_records
from toft.storage.access import run_as
from toft.storage.blobs.store import Missing
from toft.storage.content import NO_CACHE
from toft.storage.errors import StorageError, access_denied, bytes_are_gone
from toft.storage.names import DEFAULT_TYPE, FOLDER_MARK, check_key, read_content_type
from toft.storage.objects import MOST_TRIES, copy_object, load_as
from toft.storage.records import SERVICE
from toft.storage.s3 import records
from toft.storage.s3.call import S3Call
from toft.storage.s3.errors import invalid_argument, malformed_xml, precondition_failed
from toft.storage.s3.incoming import read_user_metadata
from toft.storage.s3.xml import Value, children, read_xml, text_of, xml_response
from toft.storage.serve import Served, header_value, read_served, serve
from toft.storage.uploads import load_bucket_facts, put_object

type Json = dict[str, Any]

MOST_TO_DELETE: Final = 1000

#: query member → field of the answer that it replaces
_OVERRIDES: Final = {
    "response-content-type": b"content-type",
    "response-content-language": b"content-language",
    "response-expires": b"expires",
    "response-cache-control": b"cache-control",
    "response-content-disposition": b"content-disposition",
    "response-content-encoding": b"content-encoding",
}


async def put(s3: S3Call) -> Response:
    """PUT /{bucket}/{key}: create or replace. An empty object whose key ends with a slash marks a folder."""
    received = s3.incoming()
    key = s3.key
    if key.endswith("/") and received.declared_bytes == 0:
        key += FOLDER_MARK
    saved = await put_object(s3.call, s3.actor, (s3.bucket, key), s3.call.owner_id, received, is_upsert=True)
    return Response(200, [(b"etag", saved["metadata"]["eTag"].encode())])


async def get(s3: S3Call) -> Response:
    """GET and HEAD /{bucket}/{key}"""
    row = await load_as(s3.call, s3.actor, *s3.place)
    for _ in range(MOST_TRIES):
        try:
            return await _serve(s3, row)
        except Missing:
            known, row = row["version"], await load_as(s3.call, s3.actor, *s3.place)
            if row["version"] == known:
                break
    raise bytes_are_gone()


async def _serve(s3: S3Call, row: Json) -> Response:
    served = read_served(row)
    _check_match(served, s3.header(b"if-match"), s3.header(b"if-unmodified-since"))
    response = await serve(s3.call, served)
    replaced = {b"content-type": header_value(served.content_type), b"x-robots-tag": None}
    for member, field in _OVERRIDES.items():
        given = s3.query(member)
        if given is not None:
            replaced[field] = header_value(given)
    response.headers = [pair for pair in response.headers if pair[0] not in replaced]
    response.headers += [(name, value) for name, value in replaced.items() if value is not None]
    response.headers += _metadata_headers(row["user_metadata"])
    return response


def _metadata_headers(metadata: object) -> list[tuple[bytes, bytes]]:
    """What fits into header fields; of the rest only the number."""
    fields: list[tuple[bytes, bytes]] = []
    missing = 0
    known = cast("Json", metadata) if isinstance(metadata, dict) else {}
    for name, value in known.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        if name.isascii() and name.replace("-", "").replace("_", "").isalnum() and _is_plain(text):
            fields.append((f"x-amz-meta-{name.lower()}".encode(), text.encode()))
        else:
            missing += 1
    if missing:
        fields.append((b"x-amz-missing-meta", str(missing).encode()))
    return fields


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


async def tagging(s3: S3Call) -> Response:
    """GET /{bucket}/{key}?tagging: there are no tags."""
    await load_as(s3.call, s3.actor, *s3.place)
    return xml_response("Tagging", {"TagSet": {}})


async def copy(s3: S3Call) -> Response:
    """PUT /{bucket}/{key} with `x-amz-copy-source`"""
    check_key(s3.key)
    original = await load_source(s3)
    metadata: Json = dict(original["metadata"] or {})
    user_metadata: Json | None = original["user_metadata"]
    if (s3.header(b"x-amz-metadata-directive") or "COPY").upper() == "REPLACE":
        metadata["mimetype"] = read_content_type(s3.header(b"content-type") or DEFAULT_TYPE)
        metadata["cacheControl"] = s3.header(b"cache-control") or NO_CACHE
        user_metadata = read_user_metadata(s3.call.request.headers) or {}
    saved = await copy_object(s3.call, s3.actor, original, s3.place, metadata, user_metadata, is_upsert=True)
    return xml_response("CopyObjectResult", describe_copy(saved["metadata"], saved["updated_at"]))


def describe_copy(metadata: Mapping[str, Any], at: str) -> dict[str, Value]:
    """What is said of a copy."""
    return {"ETag": str(metadata.get("eTag") or ""), "LastModified": at}


async def load_source(s3: S3Call) -> Json:
    """The row that `x-amz-copy-source` names, if the caller sees it and its conditions hold."""
    source = unquote((s3.header(b"x-amz-copy-source") or "").partition("?")[0]).removeprefix("/")
    bucket, _, key = source.partition("/")
    if not bucket or not key or "\0" in source:
        raise invalid_argument("x-amz-copy-source must be BUCKET/KEY")
    row = await load_as(s3.call, s3.actor, bucket, key)
    served = read_served(row)
    prefix = "x-amz-copy-source-"
    _check_match(
        served, s3.header(f"{prefix}if-match".encode()), s3.header(f"{prefix}if-unmodified-since".encode())
    )
    none_match = s3.header(f"{prefix}if-none-match".encode())
    since = _read_date(s3.header(f"{prefix}if-modified-since".encode()))
    if none_match is not None:
        if _same_etag(none_match, served.etag):
            raise precondition_failed()
    elif since is not None and served.last_modified is not None and served.last_modified <= since:
        raise precondition_failed()
    return row


def _check_match(served: Served, match: str | None, unmodified_since: str | None) -> None:
    if match is not None:
        if match != "*" and not _same_etag(match, served.etag):
            raise precondition_failed()
        return
    since = _read_date(unmodified_since)
    modified = served.last_modified
    if since is not None and modified is not None and modified.replace(microsecond=0) > since:
        raise precondition_failed()


def _same_etag(given: str, etag: str) -> bool:
    return given.strip().strip('"') == etag.strip('"')


def _read_date(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text) if text else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


async def delete(s3: S3Call) -> Response:
    """DELETE /{bucket}/{key}: 204 also for what is not there."""
    await load_bucket_facts(s3.call, s3.bucket)
    names = [s3.key, s3.key + FOLDER_MARK] if s3.key.endswith("/") else [s3.key]
    _, refused = await _delete(s3, names)
    if refused:
        raise access_denied()
    return Response(204)


async def delete_many(s3: S3Call) -> Response:
    """POST /{bucket}?delete"""
    root = read_xml(await s3.read_xml_body(), "Delete")
    if root is None:
        raise malformed_xml()
    keys = [text_of(item, "Key") for item in children(root, "Object")]
    if not keys or len(keys) > MOST_TO_DELETE or not all(keys):
        raise malformed_xml()
    names = [key for key in keys if key]
    await load_bucket_facts(s3.call, s3.bucket)
    is_quiet = (text_of(root, "Quiet") or "").strip().lower() == "true"
    done, refused = await _delete(s3, names)
    return xml_response(
        "DeleteResult",
        {
            "Deleted": [] if is_quiet else [{"Key": name} for name in done],
            "Error": [{"Key": name, "Code": "AccessDenied", "Message": "Access Denied"} for name in refused],
        },
    )


async def _delete(s3: S3Call, names: list[str]) -> tuple[list[str], list[str]]:
    """Delete these; which are not there now, and which still are because the caller may not."""
    real = [name for name in names if "\0" not in name]
    try:
        [deleted] = await run_as(s3.call, s3.actor, base_records.delete_objects(s3.actor, s3.bucket, real))
    except StorageError as error:
        if error.status != 403:
            raise
        return [], names
    await s3.call.context.blobs.delete([row[1].decode() for row in deleted.rows if row[1] is not None])
    [left] = await run_as(s3.call, SERVICE, records.existing_keys(s3.bucket, real))
    still = {row[0].decode() for row in left.rows if row[0] is not None}
    return [name for name in names if name not in still], [name for name in names if name in still]
