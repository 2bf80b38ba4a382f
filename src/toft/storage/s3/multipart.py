"""Objects that come in parts: begun, filled in any order, and at the end joined into one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

import msgspec

from toft.http.message import Response
from toft.storage import records as base_records
from toft.storage.access import probe, run_as
from toft.storage.blobs.store import Missing, NoRoom, TooLarge, Written
from toft.storage.errors import StorageError, bytes_are_gone, disk_full, no_such_bucket, too_large
from toft.storage.names import check_bucket_name, check_key
from toft.storage.ranges import Span
from toft.storage.records import SERVICE, ObjectRow
from toft.storage.s3 import records
from toft.storage.s3.buckets import require_bucket
from toft.storage.s3.call import S3Call
from toft.storage.s3.errors import invalid_argument, invalid_part, malformed_xml, no_such_upload
from toft.storage.s3.listing import is_encoded
from toft.storage.s3.objects import describe_copy, load_source
from toft.storage.s3.xml import children, read_xml, text_of, xml_response
from toft.storage.serve import read_served
from toft.storage.uploads import check_rules, describe_bytes, load_bucket_facts, publish

type Json = dict[str, Any]

MOST_PARTS: Final = 10_000
_MOST_LISTED: Final = 1000
_RANGE: Final = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})")


async def create(s3: S3Call) -> Response:
    """POST /{bucket}/{key}?uploads"""
    check_bucket_name(s3.bucket)
    check_key(s3.key)
    facts = await load_bucket_facts(s3.call, s3.bucket)
    received = s3.incoming()
    check_rules(s3.call, facts, s3.key, received.content_type, None)
    metadata: Json = {"mimetype": received.content_type, "cacheControl": received.cache_control}
    await _ask(s3, metadata, received.user_metadata)
    upload_id = s3.call.context.new_version()
    begin = records.begin_upload(upload_id, s3.place, s3.call.owner_id, metadata, received.user_metadata)
    await run_as(s3.call, SERVICE, begin)
    return xml_response(
        "InitiateMultipartUploadResult", {"Bucket": s3.bucket, "Key": s3.key, "UploadId": upload_id}
    )


async def put_part(s3: S3Call) -> Response:
    """PUT /{bucket}/{key}?partNumber&uploadId"""
    number = _part_number(s3)
    upload_id, upload = await _load(s3)
    await _ask(s3, upload["metadata"], upload["user_metadata"])
    received = s3.incoming()
    limit = await _room_for(s3, upload_id, number)
    if received.declared_bytes is not None and received.declared_bytes > limit:
        raise too_large()
    blobs = s3.call.context.blobs
    version = s3.call.context.new_version()
    try:
        written = await blobs.write(version, received.chunks, limit)
        await received.finish()
    except TooLarge:
        raise too_large() from None
    except NoRoom:
        raise disk_full() from None
    except StorageError:
        await blobs.delete([version])
        raise
    await _add_part(s3, upload_id, number, version, written)
    return Response(200, [(b"etag", f'"{written.md5}"'.encode())])


async def copy_part(s3: S3Call) -> Response:
    """PUT /{bucket}/{key}?partNumber&uploadId with `x-amz-copy-source`"""
    number = _part_number(s3)
    upload_id, upload = await _load(s3)
    await _ask(s3, upload["metadata"], upload["user_metadata"])
    source = await load_source(s3)
    size = read_served(source).size
    span = _source_range(s3, size)
    limit = await _room_for(s3, upload_id, number)
    if span.size > limit:
        raise too_large()
    blobs = s3.call.context.blobs
    version = s3.call.context.new_version()
    try:
        body = await blobs.read(source["version"], span.start, span.end)
        written = await blobs.write(version, _as_chunks(body), limit)
    except Missing:
        raise bytes_are_gone() from None
    except NoRoom:
        raise disk_full() from None
    await _add_part(s3, upload_id, number, version, written)
    at = describe_bytes(s3.call, "", 0)["lastModified"]
    return xml_response("CopyPartResult", describe_copy({"eTag": f'"{written.md5}"'}, at))


async def complete(s3: S3Call) -> Response:
    """POST /{bucket}/{key}?uploadId: join the parts that the body names, or all of them."""
    wanted = _read_parts(await s3.read_xml_body())
    upload_id, upload = await _load(s3)
    await _ask(s3, upload["metadata"], upload["user_metadata"])
    [found] = await run_as(s3.call, SERVICE, records.load_parts(upload_id))
    known = {int(row[0] or 0): [cell.decode() if cell else "" for cell in row[1:]] for row in found.rows}
    numbers = sorted(known) if wanted is None else [number for number, _ in wanted]
    if not numbers:
        raise malformed_xml()
    for number, etag in wanted or ():
        if number not in known or etag not in (None, known[number][0].strip('"')):
            raise invalid_part()
    facts = await load_bucket_facts(s3.call, s3.bucket)
    total = sum(int(known[number][1]) for number in numbers)
    check_rules(s3.call, facts, s3.key, upload["metadata"]["mimetype"], total)
    version = s3.call.context.new_version()
    try:
        await s3.call.context.blobs.join(version, [known[number][2] for number in numbers])
    except Missing:
        raise invalid_part() from None
    except NoRoom:
        raise disk_full() from None
    digest = hashlib.md5(usedforsecurity=False)
    for number in numbers:
        digest.update(bytes.fromhex(known[number][0].strip('"')))
    etag = f'"{digest.hexdigest()}-{len(numbers)}"'
    row = _row(s3, {**describe_bytes(s3.call, etag, total), **upload["metadata"]}, upload["user_metadata"])
    await publish(s3.call, msgspec.structs.replace(row, version=version, owner_id=upload["owner_id"]))
    await _end(s3, upload_id)
    location = f"{s3.call.context.external_url}/s3/{s3.bucket}/{s3.key}"
    return xml_response(
        "CompleteMultipartUploadResult",
        {"Location": location, "Bucket": s3.bucket, "Key": s3.key, "ETag": etag},
    )


async def abort(s3: S3Call) -> Response:
    """DELETE /{bucket}/{key}?uploadId"""
    upload_id, upload = await _load(s3)
    await _ask(s3, upload["metadata"], upload["user_metadata"])
    await _end(s3, upload_id)
    return Response(204)


async def list_parts(s3: S3Call) -> Response:
    """GET /{bucket}/{key}?uploadId"""
    upload_id, _ = await _load(s3)
    after = s3.number("part-number-marker", default=0, least=0, most=MOST_PARTS)
    limit = s3.number("max-parts", default=_MOST_LISTED, least=1, most=_MOST_LISTED)
    parts: list[Json] = await s3.fetch_json(
        s3.actor, records.list_parts(s3.actor, upload_id, after, limit + 1)
    )
    has_more = len(parts) > limit
    del parts[limit:]
    return xml_response(
        "ListPartsResult",
        {
            "Bucket": s3.bucket,
            "Key": s3.key,
            "UploadId": upload_id,
            "PartNumberMarker": after,
            "NextPartNumberMarker": parts[-1]["number"] if parts else None,
            "MaxParts": limit,
            "IsTruncated": has_more,
            "StorageClass": "STANDARD",
            "Part": [
                {
                    "PartNumber": part["number"],
                    "LastModified": part["at"],
                    "ETag": part["etag"],
                    "Size": part["size"],
                }
                for part in parts
            ],
        },
    )


async def list_uploads(s3: S3Call) -> Response:
    """GET /{bucket}?uploads"""
    await require_bucket(s3)
    limit = s3.number("max-uploads", default=_MOST_LISTED, least=1, most=_MOST_LISTED)
    prefix, delimiter = s3.query("prefix") or "", s3.query("delimiter") or ""
    after = s3.query("key-marker") or "", s3.query("upload-id-marker") or ""
    entries: list[Json] = await s3.fetch_json(
        s3.actor, records.list_uploads(s3.actor, s3.bucket, prefix, delimiter, after, limit + 1)
    )
    has_more = len(entries) > limit
    del entries[limit:]
    uploads = [entry for entry in entries if not _is_folder(entry, prefix, delimiter)]
    last = entries[-1] if has_more else None
    return xml_response(
        "ListMultipartUploadsResult",
        {
            "Bucket": s3.bucket,
            "KeyMarker": after[0],
            "UploadIdMarker": after[1],
            "NextKeyMarker": last["key"] if last else None,
            "NextUploadIdMarker": last["id"] if last else None,
            "Prefix": prefix,
            "Delimiter": delimiter or None,
            "EncodingType": "url" if is_encoded(s3) else None,
            "MaxUploads": limit,
            "IsTruncated": has_more,
            "Upload": [
                {
                    "Key": entry["key"],
                    "UploadId": entry["id"],
                    "Initiated": entry["at"],
                    "StorageClass": "STANDARD",
                }
                for entry in uploads
            ],
            "CommonPrefixes": [
                {"Prefix": entry["key"]} for entry in entries if _is_folder(entry, prefix, delimiter)
            ],
        },
    )


def _is_folder(entry: Json, prefix: str, delimiter: str) -> bool:
    return bool(delimiter) and delimiter in entry["key"][len(prefix) :]


async def _load(s3: S3Call) -> tuple[str, Json]:
    upload_id = s3.query("uploadId") or ""
    upload: Json | None = None
    if "\0" not in upload_id + s3.key:
        upload = await s3.fetch_json(SERVICE, records.load_upload(upload_id, s3.place))
    if upload is None:
        raise no_such_upload()
    return upload_id, upload


async def _ask(s3: S3Call, metadata: Json, user_metadata: Json | None) -> None:
    """Raise unless the caller may write the object that this will be."""
    await probe(s3.call, s3.actor, _row(s3, metadata, user_metadata), is_upsert=True)


def _row(s3: S3Call, metadata: Json, user_metadata: Json | None) -> ObjectRow:
    return ObjectRow(
        bucket=s3.bucket,
        key=s3.key,
        version="1",
        owner_id=s3.call.owner_id,
        metadata=metadata,
        user_metadata=user_metadata or {},
    )


async def _room_for(s3: S3Call, upload_id: str, number: int) -> int:
    """How large this part may be, with the others as they are."""
    facts, total = await run_as(
        s3.call,
        SERVICE,
        base_records.load_bucket_facts(s3.bucket),
        records.sum_other_parts(upload_id, number),
    )
    if not facts.rows:
        raise no_such_bucket()
    bucket: Json = msgspec.json.decode(facts.rows[0][0] or b"{}")
    limit = check_rules(s3.call, {**bucket, "allowed_mime_types": None}, s3.key, "", None)
    return max(limit - int(total.rows[0][0] or 0), 0)


async def _add_part(s3: S3Call, upload_id: str, number: int, version: str, written: Written) -> None:
    blobs = s3.call.context.blobs
    try:
        replaced, added = await run_as(
            s3.call,
            SERVICE,
            records.replace_part(upload_id, number),
            records.add_part(upload_id, s3.place, number, version, f'"{written.md5}"', written.size),
        )
    except StorageError:
        await blobs.delete([version])
        raise
    if not added.rows:
        await blobs.delete([version])
        raise no_such_upload()
    await blobs.delete([row[0].decode() for row in replaced.rows if row[0] is not None])


async def _end(s3: S3Call, upload_id: str) -> None:
    [ended] = await run_as(s3.call, SERVICE, records.end_upload(upload_id))
    await s3.call.context.blobs.delete([row[0].decode() for row in ended.rows if row[0] is not None])


def _part_number(s3: S3Call) -> int:
    text = s3.query("partNumber") or ""
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= MOST_PARTS:
        raise invalid_argument(f"partNumber must be between 1 and {MOST_PARTS}")
    return int(text)


def _source_range(s3: S3Call, size: int) -> Span:
    """The bytes to copy, all of them without a range; both ends are told, and included."""
    given = s3.header(b"x-amz-copy-source-range")
    if given is None:
        return Span(0, size)
    found = _RANGE.fullmatch(given.strip())
    if found is None or not int(found[1]) <= int(found[2]) < size:
        raise invalid_argument("x-amz-copy-source-range must be bytes=FIRST-LAST within the source")
    return Span(int(found[1]), int(found[2]) + 1)


def _read_parts(raw: bytes) -> list[tuple[int, str | None]] | None:
    """The parts that a body names, in order; None when there is none. Raises `StorageError`."""
    if not raw.strip():
        return None
    root = read_xml(raw, "CompleteMultipartUpload")
    if root is None:
        raise malformed_xml()
    parts: list[tuple[int, str | None]] = []
    for item in children(root, "Part"):
        number = (text_of(item, "PartNumber") or "").strip()
        etag = text_of(item, "ETag")
        if not number.isascii() or not number.isdecimal() or len(number) > 5:
            raise malformed_xml()
        parts.append((int(number), etag.strip().strip('"') if etag is not None else None))
    numbers = [number for number, _ in parts]
    if numbers != sorted(set(numbers)):
        raise StorageError(
            "InvalidPartOrder", 400, "InvalidPartOrder", "The parts are not in ascending order."
        )
    return parts or None


async def _as_chunks(body: bytes | AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    if isinstance(body, bytes):
        yield body
    else:
        async for piece in body:
            yield piece
