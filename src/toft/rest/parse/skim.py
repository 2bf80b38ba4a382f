"""Pure: the quick reading of a request: its shape and its values, without their meaning.

What it finds out is all that a request needs whose shape was planned before. `meaning` gives the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import msgspec

from toft.http.message import HeaderList
from toft.rest.errors import RestError, negative_limit, put_limited, range_reversed, root_disabled
from toft.rest.options import RestOptions
from toft.rest.parse import query as query_string
from toft.rest.parse.body import parse_body
from toft.rest.parse.headers import parse_accept, parse_media, parse_prefer, parse_range
from toft.rest.parse.query import NotAligned, Part, Skimmed
from toft.rest.parse.target import WRITING_METHODS, choose_act, choose_schema, parse_path
from toft.rest.request import Act, Media, Operand, Payload, Preferences, Query, RestRequest, Window


class Page(msgspec.Struct, frozen=True, gc=False):
    """The rows of the root that are asked for: from `offset` on, at most `limit`."""

    offset: int = 0
    limit: int | None = None


_WHOLE: Final = Page()


class Target(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """All that the path and the header fields ask for."""

    act: Act
    schema: str
    name: str
    has_profile: bool
    is_head: bool
    preferences: Preferences
    accept: str | None
    content: Media
    #: whether the body means anything
    has_body: bool


#: What makes two requests the same to the planner: everything but their values. The key of a plan.
type Shape = tuple[object, ...]


class Asked(msgspec.Struct, gc=False):
    """A request, skimmed. `values` are numbered as the operands of its meaning are."""

    target: Target
    skimmed: Skimmed
    values: list[bytes]
    page: Page = _WHOLE
    windows: Sequence[tuple[str, Window]] = ()
    payload: Payload | None = None
    body: bytes = b""
    shape: Shape = ()

    @property
    def shown_back(self) -> str:
        """The query string as Content-Location has it; only reads show it."""
        return query_string.canonical(self.skimmed.pairs) if self.target.act is Act.READ else ""


_WANTED: Final = {
    b"prefer",
    b"accept",
    b"accept-profile",
    b"content-profile",
    b"content-type",
    b"range",
}
_HAS_BODY: Final = {Act.INSERT, Act.UPDATE, Act.UPSERT_ONE, Act.CALL}


class Head(msgspec.Struct, frozen=True, gc=False):
    """The header fields that matter here; several of one name are joined by commas."""

    prefer: str = ""
    accept: str | None = None
    profile: str | None = None
    content_type: str | None = None
    range: str | None = None


def read_head(method: str, headers: HeaderList) -> Head:
    """Pick the header fields that matter."""
    found: dict[bytes, str] = {}
    for name, value in headers:
        if name in _WANTED:
            text = value.decode("latin-1")
            known = found.get(name)
            found[name] = text if known is None else f"{known}, {text}"
    profile = b"content-profile" if method in WRITING_METHODS else b"accept-profile"
    return Head(
        found.get(b"prefer", ""),
        found.get(b"accept"),
        found.get(profile),
        found.get(b"content-type"),
        # Only GET honours it.
        found.get(b"range") if method == "GET" else None,
    )


@functools.lru_cache(1024)
def aim(method: str, path: str, head: Head, options: RestOptions, timezones: frozenset[str] | None) -> Target:
    """What the path and the header fields ask for. Raises PGRST101, 106, 117, 125, 126."""
    kind, name = parse_path(path)
    if kind == "root":
        if options.openapi_mode == "disabled":
            raise root_disabled()
        if options.root_function is not None:
            kind, name = "routine", options.root_function
    schema, has_profile = choose_schema(head.profile, options.schemas)
    act = choose_act(kind, method)
    preferences = parse_prefer(
        head.prefer,
        allow_transaction=options.allows_transaction_preference,
        timezones=timezones if "timezone=" in head.prefer else None,
    )
    return Target(
        act,
        schema,
        name,
        has_profile,
        method == "HEAD",
        preferences,
        head.accept,
        parse_media("application/json" if head.content_type is None else head.content_type),
        act in _HAS_BODY,
    )


def skim(
    method: str, path: str, raw_query: str, head: Head, options: RestOptions, timezones: frozenset[str] | None
) -> Asked:
    """What is asked, as far as it can be told without the grammar and without the body.

    Raises PGRST101, 106, 117, 125, 126.
    """
    target = aim(method, path, head, options, timezones)
    skimmed = query_string.skim(raw_query, values_may_be_arguments=target.act is Act.CALL_READ)
    return Asked(target, skimmed, skimmed.values)


def finish(asked: Asked, head: Head, body: bytes, max_rows: int | None) -> None:
    """Add the page, the payload and with them the shape. Raises PGRST100, 102, 103, 114."""
    target, skimmed = asked.target, asked.skimmed
    form = skimmed.form
    try:
        if skimmed.windows or head.range is not None:
            asked.page = root_page(skimmed, target.act, head.range)
            asked.windows = number_windows(skimmed, asked.page, asked.values, max_rows)
            for window_path, window in asked.windows:
                form.append(f"{window_path} {window.limit is not None} {window.offset is not None}")
        if target.has_body:
            _take_body(asked, body)
    except RestError:
        # The query's grammar has the first word.
        parse_query(skimmed, asked.windows)
        raise
    asked.shape = (target, asked.payload, *form)


def _take_body(asked: Asked, body: bytes) -> None:
    columns = query_string.columns_of(asked.skimmed.parts)
    target = asked.target
    asked.payload, asked.body, more = parse_body(body, target.content, target.act, columns, len(asked.values))
    asked.values += more


def root_page(skimmed: Skimmed, act: Act, range_header: str | None) -> Page:
    """The page that limit, offset and the Range header agree on. Raises PGRST103 and PGRST114."""
    limit, offset = skimmed.windows.get("", (None, None))
    asked = parse_range(range_header)
    if asked is not None and asked[1] is not None and asked[1] < asked[0]:
        raise range_reversed()
    if act is Act.UPSERT_ONE and (limit is not None or offset):
        raise put_limited()
    first, last = offset or 0, None if limit is None else (offset or 0) + limit - 1
    if last == -1:
        # limit=0: an empty page, whatever the header says
        return Page(0, 0)
    lowest = max(first, 0, asked[0] if asked is not None else 0)
    highest = min(
        (end for end in (last, asked[1] if asked is not None else None) if end is not None), default=None
    )
    if highest is None:
        return Page(lowest)
    if highest < lowest:
        raise negative_limit()
    return Page(lowest, highest - lowest + 1)


def number_windows(
    skimmed: Skimmed, page: Page, values: list[bytes], max_rows: int | None
) -> list[tuple[str, Window]]:
    """Windows whose numbers were added to `values`; limits are cut to `max_rows`."""
    windows: list[tuple[str, Window]] = []
    root_offset = page.offset or None
    if page.limit is not None or root_offset is not None:
        windows.append(("", _window(page.limit, root_offset, values, max_rows)))
    for path, (limit, offset) in skimmed.windows.items():
        if path:
            windows.append((path, _window(limit, offset, values, max_rows)))
    return windows


def _window(limit: int | None, offset: int | None, values: list[bytes], max_rows: int | None) -> Window:
    if limit is not None and max_rows is not None:
        limit = min(limit, max_rows)
    places: list[Operand | None] = []
    for number in (limit, offset):
        if number is None:
            places.append(None)
        else:
            places.append(Operand("", len(values)))
            values.append(b"%d" % number)
    return Window(*places)


def meaning(asked: Asked) -> tuple[RestRequest, bool]:
    """The request in full, and whether others of its shape may share what is made of it.

    Raises PGRST100.
    """
    query, is_shared = parse_query(asked.skimmed, asked.windows)
    target = asked.target
    request = RestRequest(
        target.act,
        target.schema,
        target.name,
        query,
        target.preferences,
        parse_accept(target.accept),
        target.content,
        asked.payload,
        target.is_head,
        target.has_profile,
    )
    return request, is_shared


def parse_query(skimmed: Skimmed, windows: Sequence[tuple[str, Window]]) -> tuple[Query, bool]:
    """The query's meaning, and whether its values are where the quick reading saw them."""
    try:
        return query_string.parse(skimmed, windows), True
    except NotAligned:
        own: list[Part] = query_string.without_slots(skimmed.parts)
        alone = Skimmed(skimmed.pairs, own, skimmed.form, skimmed.values, skimmed.windows)
        return query_string.parse(alone, windows), False
