"""Pure: which bytes a Range header asks for."""

from __future__ import annotations

import re

import msgspec

from toft.storage.errors import invalid_range

_RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)")


class Span(msgspec.Struct, frozen=True):
    """Bytes `start` to `end`, the end not included."""

    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def parse_range(header: str | None, size: int) -> Span | None:
    """The one range of a header; None when there is no header. Raises for a malformed or impossible one.

    >>> parse_range("bytes=2-3", 10), parse_range("bytes=8-99", 10), parse_range("bytes=-3", 10)
    (Span(start=2, end=4), Span(start=8, end=10), Span(start=7, end=10))
    """
    if header is None:
        return None
    found = _RANGE.fullmatch(header.strip())
    if found is None or header.strip() == "bytes=-":
        raise invalid_range()
    first, last = found[1], found[2]
    if not first:
        span = Span(max(size - int(last), 0), size)
    else:
        span = Span(int(first), min(int(last) + 1, size) if last else size)
    if span.start >= span.end:
        raise invalid_range()
    return span
