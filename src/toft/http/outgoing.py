"""Requests of ours to the outside: identity providers and HTTP hooks that a project's configuration names.

An adapter of httpx, which is loaded by the first request: most workers never send one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    import httpx

LARGEST_ANSWER = 200 * 1024
#: never by way of a proxy
_NEAR = ("127.0.0.1", "localhost", "[::1]")


class OutsideFailed(Exception):
    """No usable answer: nobody there, too late, or too large. Its text names the reason."""


class OutsideTimedOut(OutsideFailed):
    """It took longer than it may."""


class Fetched(msgspec.Struct, frozen=True):
    """An answer, read whole. Names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_json(self) -> bool:
        """Whether it says that it is JSON."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return kind == "application/json" or kind.endswith("+json")


class Outside(Protocol):
    """The world beyond this machine's services, as far as a project names it."""

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        seconds: float = 5,
    ) -> Fetched:
        """Send a request. Redirects are not followed. Raises `OutsideFailed`."""
        ...


class HttpOutside:
    """The real one; a few connections are kept open between requests."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        seconds: float = 5,
    ) -> Fetched:
        """See `Outside`."""
        import httpx

        if self._client is None:
            mounts = {f"all://{host}": None for host in _NEAR}
            self._client = httpx.AsyncClient(mounts=mounts, follow_redirects=False)
        try:
            request = self._client.stream(
                method, url, headers=dict(headers or {}), content=body, timeout=seconds
            )
            async with request as response:
                raw = bytearray()
                async for chunk in response.aiter_bytes():
                    raw += chunk
                    if len(raw) > LARGEST_ANSWER:
                        raise OutsideFailed(f"the answer is larger than {LARGEST_ANSWER} bytes")
                return Fetched(response.status_code, dict(response.headers), bytes(raw))
        except httpx.TimeoutException:
            raise OutsideTimedOut(f"no answer within {seconds:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise OutsideFailed(str(error) or type(error).__name__) from None

    async def close(self) -> None:
        """Close the connections that are kept."""
        if self._client is not None:
            await self._client.aclose()
