"""Pure: cross-origin rules of Supabase's gateway: any origin, no cookies, all that SDKs read is exposed."""

from __future__ import annotations

from typing import Final

from toft.http.message import HeaderList, Headers

_METHODS: Final = b"GET, POST, PATCH, PUT, DELETE, OPTIONS, HEAD"
_ALWAYS_ALLOWED: Final = "Authorization, Content-Type, Accept, Accept-Language, Content-Language"
_EXPOSED: Final = (
    b"Content-Encoding, Content-Location, Content-Range, Content-Type, Content-Disposition, Date, ETag, "
    b"Last-Modified, Location, Server, Server-Timing, Transfer-Encoding, Range-Unit, Preference-Applied, "
    b"Proxy-Status, Retry-After, X-Total-Count, Link, X-Supabase-Api-Version, x-sb-error-code, "
    b"sb-auth-user-id, sb-auth-session-id, Toft-Explain"
)
_ANY_ORIGIN: Final = (b"access-control-allow-origin", b"*")
_EXPOSURE: Final = (b"access-control-expose-headers", _EXPOSED)


def is_preflight(method: str, headers: Headers) -> bool:
    """Whether a browser asks if it may, before it sends the request that it means."""
    return (
        method == "OPTIONS"
        and headers.get(b"origin") is not None
        and headers.get(b"access-control-request-method") is not None
    )


def preflight_headers(headers: Headers) -> HeaderList:
    """The answer to a preflight: everything that was asked for is allowed, for a day."""
    asked = headers.get(b"access-control-request-headers")
    allowed = f"{_ALWAYS_ALLOWED}, {asked}" if asked else _ALWAYS_ALLOWED
    return [
        _ANY_ORIGIN,
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", allowed.encode("latin-1")),
        (b"access-control-max-age", b"86400"),
    ]


def allow_any_origin(response_headers: HeaderList) -> None:
    """Let scripts of any origin read a response, unless its service has said who may."""
    if not any(name.lower() == b"access-control-allow-origin" for name, _ in response_headers):
        response_headers += (_ANY_ORIGIN, _EXPOSURE)
