"""Listing a bucket level by level, as the caller: what policies hide is not there."""

from __future__ import annotations

from toft.http.message import Response
from toft.storage import records
from toft.storage.access import run_as
from toft.storage.buckets import raw_json_response
from toft.storage.call import Call
from toft.storage.errors import invalid_request
from toft.storage.fields import read_int, read_object, read_text, require_text
from toft.storage.records import Listing

USUAL_LIMIT = 100
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
