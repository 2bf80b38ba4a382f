"""Listing a bucket, as the caller: what policies hide is not there. Two generations of the call."""

from __future__ import annotations

from typing import Any

import msgspec

from toft.http.message import Response
from toft.storage import records
from toft.storage.access import run_as
from toft.storage.buckets import json_response, raw_json_response
from toft.storage.call import Call
from toft.storage.cursor import COLUMNS, Cursor, decode_cursor, encode_cursor
from toft.storage.errors import invalid_request
from toft.storage.fields import read_bool, read_int, read_object, read_text, require_text
from toft.storage.records import FlatListing, Listing

USUAL_LIMIT = 100
LARGEST_PAGE = 1000
_SORT_COLUMNS = ("name", "updated_at", "created_at", "last_accessed_at")


async def list_level(call: Call) -> Response:
    """POST /object/list/{bucket}: direct children of a prefix, names relative to it."""
    actor = call.require_token()
    body = await call.read_body()
    prefix = require_text(body, "prefix")
    if prefix and not prefix.endswith("/"):
        prefix += "/"
    sort_by = read_object(body, "sortBy")
    column = read_text(sort_by, "column", "body/sortBy") or "name"
    order = read_text(sort_by, "order", "body/sortBy") or "asc"
    if column not in _SORT_COLUMNS:
        raise invalid_request("body/sortBy/column must be equal to one of the allowed values")
    if order not in ("asc", "desc"):
        raise invalid_request("body/sortBy/order must be equal to one of the allowed values")
    limit = read_int(body, "limit")
    listing = Listing(
        bucket=call.path["bucket"],
        prefix=prefix,
        limit=USUAL_LIMIT if limit is None else max(min(limit, 1500), 0),
        offset=min(read_int(body, "offset", least=0) or 0, 2**31 - 1),
        search=read_text(body, "search") or "",
        sort_column=column,
        sort_order=order,
    )
    [found] = await run_as(call, actor, records.list_level(actor, listing))
    return raw_json_response(found.rows[0][0])


async def list_pages(call: Call) -> Response:
    """POST /object/list-v2/{bucket}: whole keys, page by page; with a delimiter folders are told once."""
    actor = call.require_token()
    body = await call.read_body()
    cursor = decode_cursor(read_text(body, "cursor") or "") or _first_page(read_object(body, "sortBy"))
    limit = read_int(body, "limit", least=1) or LARGEST_PAGE
    if limit > LARGEST_PAGE:
        raise invalid_request(f"body/limit must be <= {LARGEST_PAGE}")
    page = FlatListing(
        bucket=call.path["bucket"],
        prefix=read_text(body, "prefix") or "",
        has_folders=read_bool(body, "with_delimiter") or False,
        limit=limit + 1,
        column=cursor.column,
        order=cursor.order,
        after=cursor.last_name,
        after_time=cursor.at,
    )
    [found] = await run_as(call, actor, records.list_flat(actor, page))
    entries: list[dict[str, Any]] = msgspec.json.decode(found.rows[0][0] or b"[]")
    has_next = len(entries) > limit
    del entries[limit:]
    for entry in entries:
        if entry["id"] is None:
            entry["name"] += "/"
    answer: dict[str, Any] = {"hasNext": has_next}
    if has_next:
        last = entries[-1]
        at = last[cursor.column] if cursor.column != "name" else ""
        answer["nextCursor"] = encode_cursor(Cursor(last["name"], cursor.order, cursor.column, at))
        answer["nextCursorKey"] = last["name"]
    answer["folders"] = [entry for entry in entries if entry["id"] is None]
    answer["objects"] = [entry for entry in entries if entry["id"] is not None]
    return json_response(answer)


def _first_page(sort_by: dict[str, Any]) -> Cursor:
    column = read_text(sort_by, "column", "body/sortBy") or "name"
    order = read_text(sort_by, "order", "body/sortBy") or "asc"
    if column not in COLUMNS:
        raise invalid_request("body/sortBy/column must be equal to one of the allowed values")
    if order not in ("asc", "desc"):
        raise invalid_request("body/sortBy/order must be equal to one of the allowed values")
    return Cursor("", order, column)
