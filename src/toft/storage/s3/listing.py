"""Listing keys, in the two ways that clients ask for."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final
from urllib.parse import quote

from toft.http.message import Response
from toft.storage import records as base_records
from toft.storage.access import run_as
from toft.storage.errors import no_such_bucket
from toft.storage.s3 import records
from toft.storage.s3.call import S3Call
from toft.storage.s3.errors import invalid_argument
from toft.storage.s3.xml import Value, xml_response

_MOST_KEYS: Final = 1000

type Json = dict[str, Any]


async def list_objects_v2(s3: S3Call) -> Response:
    """GET /{bucket}?list-type=2"""
    token = s3.query("continuation-token")
    after = _read_token(token) if token else s3.query("start-after") or ""
    entries, has_more, limit = await _load(s3, after)
    last = entries[-1]["name"] if has_more and entries else None
    members: dict[str, Value] = {
        **_usual(s3, entries, limit, has_more),
        "KeyCount": len(entries),
        "ContinuationToken": token or None,
        "NextContinuationToken": None if last is None else _write_token(last),
        "StartAfter": _name(s3, s3.query("start-after")),
    }
    return xml_response("ListBucketResult", members)


async def list_objects(s3: S3Call) -> Response:
    """GET /{bucket}"""
    marker = s3.query("marker") or ""
    entries, has_more, limit = await _load(s3, marker)
    members: dict[str, Value] = {
        **_usual(s3, entries, limit, has_more),
        "Marker": _name(s3, marker),
        "NextMarker": _name(s3, entries[-1]["name"]) if has_more and entries else None,
    }
    return xml_response("ListBucketResult", members)


async def _load(s3: S3Call, after: str) -> tuple[list[Json], bool, int]:
    """Entries as the caller sees them, folders with their delimiter; whether there are more; the limit."""
    limit = s3.number("max-keys", default=_MOST_KEYS, least=0, most=_MOST_KEYS)
    prefix, delimiter = s3.query("prefix") or "", s3.query("delimiter") or ""
    if "\0" in prefix + delimiter + after:
        raise invalid_argument("NUL is no part of a key")
    facts = base_records.load_bucket_facts(s3.bucket)
    [found] = await run_as(s3.call, base_records.SERVICE, facts)
    if not found.rows:
        raise no_such_bucket()
    if limit == 0:
        return [], False, 0
    listing = records.list_keys(s3.actor, s3.bucket, prefix, delimiter, after, limit + 1)
    entries: list[Json] = await s3.fetch_json(s3.actor, listing)
    has_more = len(entries) > limit
    del entries[limit:]
    for entry in entries:
        if entry["id"] is None:
            entry["name"] += delimiter
    return entries, has_more, limit


def _usual(s3: S3Call, entries: list[Json], limit: int, has_more: bool) -> dict[str, Value]:
    """What both ways tell."""
    return {
        "Name": s3.bucket,
        "Prefix": _name(s3, s3.query("prefix") or ""),
        "Delimiter": _name(s3, s3.query("delimiter")),
        "EncodingType": "url" if is_encoded(s3) else None,
        "MaxKeys": limit,
        "IsTruncated": has_more,
        "Contents": [_describe(s3, entry) for entry in entries if entry["id"] is not None],
        "CommonPrefixes": [{"Prefix": _name(s3, entry["name"])} for entry in entries if entry["id"] is None],
    }


def _describe(s3: S3Call, entry: Json) -> dict[str, Value]:
    metadata: Json = entry["metadata"] or {}
    size = metadata.get("size")
    etag = metadata.get("eTag")
    return {
        "Key": _name(s3, entry["name"]),
        "LastModified": entry["updated_at"],
        "ETag": etag if isinstance(etag, str) else "",
        "Size": size if isinstance(size, int) else 0,
        "StorageClass": "STANDARD",
    }


def is_encoded(s3: S3Call) -> bool:
    """Whether the client wants names with escapes, as a document cannot hold every character."""
    given = s3.query("encoding-type")
    if given and given != "url":
        raise invalid_argument("encoding-type must be url")
    return given == "url"


def _name(s3: S3Call, name: str | None) -> str | None:
    return quote(name, safe="/") if name and is_encoded(s3) else name


def _write_token(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _read_token(token: str) -> str:
    try:
        return base64.urlsafe_b64decode(token).decode()
    except (binascii.Error, ValueError):
        raise invalid_argument("The continuation token provided is incorrect") from None
