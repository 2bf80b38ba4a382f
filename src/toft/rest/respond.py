"""Pure: the one row that the database gave becomes status, headers and body; so does an error."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec

from toft.http.message import HeaderList, Response
from toft.pg.wire import Result
from toft.rest.errors import (
    RestError,
    bad_response_headers,
    bad_response_status,
    not_singular,
    range_beyond,
)
from toft.rest.parse.headers import content_type
from toft.rest.plan.nodes import InvokePlan, Plan
from toft.rest.request import Act, Media
from toft.tokens.caller import Refusal

_JSON: Final = b"application/json; charset=utf-8"
_pairs = msgspec.json.Decoder(list[tuple[str, str | None]])


class Answer(msgspec.Struct, gc=False):
    """What the database answered to a statement of `render/statement.py`."""

    total: int | None
    page: int
    body: bytes
    headers: bytes | None
    status: bytes | None
    location: bytes | None = None
    inserted: int | None = None


def read_answer(results: Sequence[Result], plan: Plan) -> Answer:
    """The row as a value; a planned count, if there is a second result, replaces the total."""
    result = results[0]
    if plan.media.kind == "plan":
        lines = (row[0] or b"" for row in result.rows)
        return Answer(None, 0, b"\n".join(lines) + b"\n", None, None)
    row = result.rows[0]
    total, page, body, headers, status = row[:5]
    answer = Answer(
        None if total is None else int(total), 0 if page is None else int(page), body or b"", headers, status
    )
    if len(row) > 5:
        answer.location, inserted = row[5:]
        answer.inserted = None if inserted is None else int(inserted)
    if len(results) > 1:
        answer.total = _estimated(plan, answer.total, _planned_rows(results[1]))
    return answer


def _planned_rows(result: Result) -> int | None:
    explained: Any = msgspec.json.decode(b"".join(row[0] or b"" for row in result.rows))
    try:
        return int(explained[0]["Plan"]["Plan Rows"])
    except (LookupError, TypeError, ValueError):
        return None


def _estimated(plan: Plan, counted: int | None, planned: int | None) -> int | None:
    if plan.preferences.count == "planned":
        return planned
    if counted is not None and planned is not None and plan.max_rows is not None and counted > plan.max_rows:
        return max(counted, planned)
    return counted


# --- answers --------------------------------------------------------------------------------------------


def respond(plan: Plan, answer: Answer, offset: int, canonical: str) -> Response:
    """The response. `offset` is where the page begins, `canonical` the query string as it is shown back.

    Raises `RestError` when what the database wants the response to be cannot be understood.
    """
    if plan.media.kind == "plan":
        response = Response(200, _typed(plan, answer.body), answer.body)
    elif isinstance(plan, InvokePlan):
        response = _called(plan, answer, offset)
    elif plan.act is Act.READ:
        response = _read(plan, answer, offset, canonical)
    elif plan.act is Act.INSERT:
        response = _inserted(plan, answer)
    else:
        response = _changed(plan, answer)
    _override(response, answer)
    return response


def content_range(first: int, last: int, total: int | None) -> tuple[bytes, bytes]:
    """The Content-Range header.

    >>> content_range(0, 9, 100), content_range(1, 0, None)
    ((b'content-range', b'0-9/100'), (b'content-range', b'*/*'))
    """
    shown = f"{first}-{last}" if total != 0 and first <= last else "*"
    return b"content-range", f"{shown}/{'*' if total is None else total}".encode()


def _typed(plan: Plan, body: bytes | None) -> HeaderList:
    """The headers of a response that has a type, and a body unless it is None."""
    headers: HeaderList = [] if body is None else [(b"content-length", b"%d" % len(body))]
    headers.append((b"content-type", _type_of(plan.media)))
    if plan.has_profile:
        headers.append((b"content-profile", plan.name.schema.encode()))
    return headers


@functools.lru_cache(512)
def _type_of(media: Media) -> bytes:
    return content_type(media).encode()


def _applied(plan: Plan) -> HeaderList:
    return [(b"preference-applied", ", ".join(plan.applied).encode())] if plan.applied else []


def _page(answer: Answer, offset: int) -> tuple[int, tuple[bytes, bytes]]:
    """Status and Content-Range of a page of rows."""
    last = offset + answer.page - 1
    shown = content_range(offset, last, answer.total)
    if answer.total is None:
        return 200, shown
    if offset > answer.total:
        return 416, shown
    return (206 if answer.page < answer.total else 200), shown


def _read(plan: Plan, answer: Answer, offset: int, canonical: str) -> Response:
    if plan.is_singular and answer.page != 1:
        raise not_singular(answer.page)
    status, shown = _page(answer, offset)
    location = f"/{plan.name.name}" + (f"?{canonical}" if canonical else "")
    body = answer.body
    if status == 416:
        body = range_beyond(offset, answer.total or 0).body()
    elif plan.is_head:
        body = b""
    headers = [shown, (b"content-location", location.encode("utf-8", "surrogateescape"))]
    headers += _typed(plan, None if plan.is_head else body) + _applied(plan)
    return Response(status, headers, body)


def _called(plan: InvokePlan, answer: Answer, offset: int) -> Response:
    status, shown = _page(answer, offset)
    headers = [shown, *_applied(plan)]
    if plan.call.routine.returns_void:
        return Response(204, headers)
    body = answer.body if status != 416 else range_beyond(offset, answer.total or 0).body()
    if plan.is_head:
        return Response(status, headers + _typed(plan, None))
    return Response(status, headers + _typed(plan, body), body)


def _inserted(plan: Plan, answer: Answer) -> Response:
    headers: HeaderList = []
    if answer.location is not None:
        headers.append((b"location", _location(plan.name.name, _pairs.decode(answer.location))))
    headers.append(content_range(1, 0, answer.page if plan.counts_rows else None))
    headers += _applied(plan)
    is_merge = plan.preferences.resolution == "merge-duplicates"
    status = 200 if is_merge and (answer.inserted or 0) <= 0 else 201
    if plan.preferences.representation == "representation":
        return Response(status, _typed(plan, answer.body) + headers, answer.body)
    return Response(status, [(b"content-length", b"0"), *headers])


def _location(table: str, pairs: Sequence[tuple[str, str | None]]) -> bytes:
    query = "&".join(
        f"{quote(name, safe='')}={'is.null' if value is None else 'eq.' + quote(value, safe='')}"
        for name, value in pairs
    )
    return f"/{table}?{query}".encode()


def _changed(plan: Plan, answer: Answer) -> Response:
    """PATCH, PUT and DELETE."""
    total = answer.page if plan.counts_rows else None
    headers = _applied(plan)
    if plan.act is Act.UPDATE:
        headers.insert(0, content_range(0, answer.page - 1, total))
    elif plan.act is Act.DELETE:
        headers.insert(0, content_range(1, 0, total))
    if plan.preferences.representation != "representation":
        return Response(204, headers)
    is_new = plan.act is Act.UPSERT_ONE and (answer.inserted or 0) > 0
    return Response(201 if is_new else 200, headers + _typed(plan, answer.body), answer.body)


# --- what the database wants ----------------------------------------------------------------------------


def _override(response: Response, answer: Answer) -> None:
    """Apply response.status and response.headers; a header replaces ours of the same name."""
    if answer.status is None and answer.headers is None:
        return
    status = response.status if answer.status is None else _wished_status(answer.status)
    if answer.headers is not None:
        wished = _wished_headers(answer.headers)
        names = {name for name, _ in wished}
        response.headers = [pair for pair in response.headers if pair[0] not in names] + wished
    response.status = status


def _wished_status(raw: bytes) -> int:
    digits = raw[: len(raw) - len(raw.lstrip(b"0123456789"))]
    if not digits:
        raise bad_response_status()
    status = int(digits)
    if not 100 <= status <= 999:
        raise bad_response_status()
    return status


def _wished_headers(raw: bytes) -> HeaderList:
    try:
        decoded: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise bad_response_headers() from None
    if not isinstance(decoded, list):
        raise bad_response_headers()
    wished: HeaderList = []
    for item in cast("list[Any]", decoded):
        match item:
            case {**fields} if len(fields) == 1 and isinstance(value := next(iter(fields.values())), str):
                wished.append((next(iter(fields)).lower().encode(), value.encode()))
            case _:
                raise bad_response_headers()
    return wished


# --- errors and other answers ---------------------------------------------------------------------------


def respond_error(error: RestError) -> Response:
    """The error as the client sees it."""
    body = error.body()
    headers = [
        (b"content-type", _JSON),
        (b"content-length", b"%d" % len(body)),
        (b"proxy-status", f"PostgREST; error={error.code}".encode()),
        *error.headers,
    ]
    # A phrase is one line.
    reason = None if error.status_text is None else " ".join(error.status_text.split()).encode()
    return Response(error.status, headers, body, reason)


_REFUSALS: Final = {
    Refusal.NO_API_KEY: {
        "message": "No API key found in request",
        "hint": "No `apikey` request header or url param was found.",
    },
    Refusal.INVALID_API_KEY: {
        "message": "Invalid API key",
        "hint": "Double check your Supabase `anon` or `service_role` API key.",
    },
}


def respond_refusal(refusal: Refusal) -> Response:
    """The door's answer to a missing or wrong API key."""
    body = msgspec.json.encode(_REFUSALS[refusal])
    return Response(401, [(b"content-type", _JSON), (b"content-length", b"%d" % len(body))], body)


def respond_allow(methods: str) -> Response:
    """The answer to OPTIONS."""
    return Response(
        200,
        [
            (b"content-length", b"0"),
            (b"access-control-allow-origin", b"*"),
            (b"allow", methods.encode()),
        ],
    )
