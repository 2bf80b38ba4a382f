"""Serving an object: headers from its row, bytes from the store, ranges and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any, cast
from urllib.parse import quote

import msgspec

from toft.http.message import HeaderList, Response
from toft.storage.blobs.store import Missing
from toft.storage.call import Call
from toft.storage.names import DEFAULT_TYPE
from toft.storage.ranges import parse_range


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """An object as it is served."""

    key: str
    version: str
    size: int
    content_type: str
    cache_control: str
    etag: str
    last_modified: datetime | None
    robots: str


def read_served(row: Mapping[str, Any]) -> Served:
    """What is served of an object, from its row's JSON. A seed's row may have no metadata at all."""
    given = row.get("metadata")
    metadata = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    size = metadata.get("size")
    modified = metadata.get("lastModified") or row.get("updated_at")
    return Served(
        key=row["name"],
        version=row["version"],
        size=int(size) if isinstance(size, int | float) else 0,
        content_type=_text(metadata.get("mimetype")) or DEFAULT_TYPE,
        cache_control=_text(metadata.get("cacheControl")) or "no-cache",
        etag=_text(metadata.get("eTag")),
        last_modified=_read_instant(modified),
        robots=_text(metadata.get("xRobotsTag")) or "none",
    )


async def serve(call: Call, served: Served, *, expires_at: int | None = None) -> Response:
    """The answer to GET and HEAD. `expires_at`: of the signed URL, told in place of the cache rule.

    Raises `Missing` when the row's bytes are not there.
    """
    headers = describe(call, served, expires_at)
    if is_unchanged(call, served):
        return Response(304, headers)
    span = parse_range(call.header(b"range"), served.size)
    start, end = (span.start, span.end) if span is not None else (0, served.size)
    headers.append((b"content-length", str(end - start).encode()))
    if span is not None:
        headers.append((b"content-range", f"bytes {start}-{end - 1}/{served.size}".encode()))
    if call.request.method == "HEAD":
        return Response(200, headers)
    body = await call.context.blobs.read(served.version, start, end)
    if isinstance(body, bytes) and len(body) != end - start:
        raise Missing("the bytes are fewer than the row says")
    return Response(206 if span is not None else 200, headers, body)


def describe(
    call: Call, served: Served, expires_at: int | None, *, content_type: str | None = None
) -> HeaderList:
    """What is told of an object besides its length. content_type: of what is sent, if it is made of it."""
    # a page that runs as one of ours could read what belongs to the site
    declared = content_type or served.content_type
    kind = "text/plain" if "text/html" in declared.lower() else declared
    headers: HeaderList = [
        (b"accept-ranges", b"bytes"),
        (b"content-type", header_value(kind)),
        (b"x-robots-tag", header_value(served.robots)),
    ]
    if served.etag:
        headers.append((b"etag", header_value(served.etag)))
    if served.last_modified is not None:
        headers.append((b"last-modified", format_datetime(served.last_modified, usegmt=True).encode()))
    if expires_at is not None:
        moment = datetime.fromtimestamp(expires_at, UTC)
        headers.append((b"expires", format_datetime(moment, usegmt=True).encode()))
    else:
        asked = call.header(b"if-none-match")
        stale = ", stale-while-revalidate=30" if asked is not None and asked != served.etag else ""
        headers.append((b"cache-control", header_value(served.cache_control + stale)))
    download = call.query.get("download")
    if download is not None:
        headers.append((b"content-disposition", _disposition(download)))
    return headers


def _disposition(name: str) -> bytes:
    if not name:
        return b"attachment;"
    encoded = quote(name, safe="!'()*-._~")
    return f"attachment; filename={encoded}; filename*=UTF-8''{encoded}".encode()


def is_unchanged(call: Call, served: Served) -> bool:
    """Whether the client says that it has this very object."""
    asked = call.header(b"if-none-match")
    if asked is not None:
        return asked == served.etag
    since = call.header(b"if-modified-since")
    if since is None or served.last_modified is None:
        return False
    try:
        moment = parsedate_to_datetime(since)
    except ValueError:
        return False
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment >= served.last_modified.replace(microsecond=0)


def _read_instant(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if moment is None:
        return None
    return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def header_value(value: str) -> bytes:
    """A header's value from what a row says: a seed may have put anything there."""
    raw = value.encode("latin-1", "replace")
    return bytes(byte for byte in raw if byte >= 0x20 and byte != 0x7F)
