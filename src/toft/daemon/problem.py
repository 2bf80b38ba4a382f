"""Pure: errors as problem+json (RFC 9457)."""

from __future__ import annotations

import msgspec

from toft.errors.shape import ToftError
from toft.http.message import Response

_TYPE = (b"content-type", b"application/problem+json")


def problem(error: ToftError) -> Response:
    """The answer that tells of an error."""
    return Response(error.status, [_TYPE], msgspec.json.encode(error.to_json()))


def refused(status: int, title: str) -> Response:
    """A refusal that has no code of its own: a path or method that does not exist."""
    body = {"type": "about:blank", "title": title, "status": status}
    return Response(status, [_TYPE], msgspec.json.encode(body))
