"""Pure: which web pages of other origins may read the answers, for a Data API that stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toft.http.message import HeaderList, Request, Response

_METHODS: Final = b"GET, POST, PATCH, PUT, DELETE, OPTIONS, HEAD"
_ALWAYS_ALLOWED: Final = ("Accept", "Accept-Language", "Content-Language")
_EXPOSED: Final = (
    b"Content-Encoding, Content-Location, Content-Range, Content-Type, Date, Location, Server,"
    b" Transfer-Encoding, Range-Unit"
)
_MAX_AGE: Final = b"86400"


def is_preflight(request: Request) -> bool:
    """A browser asks first whether it may."""
    return (
        request.method == "OPTIONS"
        and request.headers.get(b"origin") is not None
        and request.headers.get(b"access-control-request-method") is not None
    )


def answer_preflight(request: Request, origins: Sequence[str] | None) -> Response:
    """The answer to a preflight; one to a stranger has no leave in it."""
    allowed = _allowed(request, origins)
    if not allowed:
        return Response(200)
    asked = request.headers.get(b"access-control-request-headers") or ""
    names = ["Authorization", *(name.strip() for name in asked.split(",") if name.strip()), *_ALWAYS_ALLOWED]
    headers: HeaderList = [
        *allowed,
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", ", ".join(names).encode("latin-1")),
        (b"access-control-max-age", _MAX_AGE),
    ]
    return Response(200, headers)


def allow_origin(request: Request, origins: Sequence[str] | None) -> HeaderList:
    """The headers that let a page read an ordinary answer."""
    allowed = _allowed(request, origins)
    return [*allowed, (b"access-control-expose-headers", _EXPOSED)] if allowed else []


def _allowed(request: Request, origins: Sequence[str] | None) -> HeaderList:
    origin = request.headers.get(b"origin")
    if origin is None:
        return []
    if origins is None:
        return [(b"access-control-allow-origin", b"*")]
    if origin not in origins:
        return []
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-allow-credentials", b"true"),
    ]
