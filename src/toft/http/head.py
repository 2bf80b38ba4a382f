"""Pure: the head of a response as bytes."""

from __future__ import annotations

import http
from collections.abc import Sequence
from typing import Final

_PHRASES: Final = {status.value: status.phrase for status in http.HTTPStatus}
_LINES: Final = {
    status: f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n".encode() for status in range(100, 600)
}


class LineBreak(ValueError):
    """A field has a line break in it, and would be more fields than one to the client."""


def render_head(
    status: int, reason: bytes | None, fields: Sequence[tuple[bytes, bytes]], *own: bytes
) -> bytes:
    """Everything before the body. own: whole lines that the server adds. Raises `LineBreak`.

    >>> render_head(200, None, [(b"x-a", b"1")], b"connection: close\\r\\n")
    b'HTTP/1.1 200 OK\\r\\nx-a: 1\\r\\nconnection: close\\r\\n\\r\\n'
    """
    line = _LINES.get(status) if reason is None else None
    lines = [b"%b: %b\r\n" % field for field in fields]
    head = b"".join((line or b"HTTP/1.1 %d %b\r\n" % (status, reason or b""), *own, *lines, b"\r\n"))
    count = len(lines) + len(own) + 2
    if head.count(b"\n") != count or head.count(b"\r") != count or 0 in head:
        raise LineBreak
    return head


def length_of(fields: Sequence[tuple[bytes, bytes]]) -> int | None:
    """The body's length, where the fields tell it."""
    for name, value in fields:
        if len(name) == 14 and name.lower() == b"content-length":
            return int(value)
    return None
