"""What comes with a PutObject or UploadPart: unframed, counted, and compared with what was announced."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

from toft.http.message import Headers
from toft.storage.call import Call
from toft.storage.content import LARGEST_USER_METADATA_BYTES, NO_CACHE
from toft.storage.errors import too_large
from toft.storage.names import DEFAULT_TYPE, read_content_type
from toft.storage.s3.chunks import Chunks, is_chunked
from toft.storage.s3.digests import Expectations
from toft.storage.s3.errors import incomplete_body, invalid_argument
from toft.storage.s3.sigv4 import Signed

_META: Final = b"x-amz-meta-"


class S3Incoming:
    """An upload through this door. See `uploads.Incoming`."""

    robots: str | None = None
    overhead_bytes = 0

    def __init__(self, call: Call, signed: Signed, key: bytes) -> None:
        self._call = call
        self.content_type = read_content_type(call.header(b"content-type") or DEFAULT_TYPE)
        self.cache_control = call.header(b"cache-control") or NO_CACHE
        self.user_metadata = read_user_metadata(call.request.headers)
        names = (call.header(b"x-amz-trailer") or "").lower().split(",")
        trailer_names = tuple(name.strip() for name in names if name.strip())
        self._expectations = Expectations(call.request.headers, signed.payload, trailer_names)
        body = aiter(call.request.body)
        self._chunks = Chunks(body, signed, key, trailer_names) if is_chunked(signed.payload) else None
        self._body = body
        field = b"x-amz-decoded-content-length" if self._chunks is not None else b"content-length"
        announced = call.header(field)
        self.declared_bytes = _read_length(announced)
        self._count = 0

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        """The object's bytes."""
        return self._count_all(aiter(self._chunks) if self._chunks is not None else self._body)

    async def open(self) -> None:
        """Nothing comes before the first byte."""

    async def finish(self) -> None:
        """Everything must add up."""
        if self.declared_bytes is not None and self._count != self.declared_bytes:
            raise incomplete_body()
        self._expectations.check(self._chunks.trailers if self._chunks is not None else {})

    async def _count_all(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        async for piece in pieces:
            self._count += len(piece)
            self._expectations.update(piece)
            yield piece


def read_user_metadata(headers: Headers) -> dict[str, Any] | None:
    """The `x-amz-meta-` fields. None without any."""
    found: dict[str, Any] = {}
    size = 0
    for name, value in headers.raw:
        if name.startswith(_META):
            size += len(name) + len(value)
            found[name[len(_META) :].decode("latin-1")] = _decode(value)
    if size > LARGEST_USER_METADATA_BYTES:
        raise too_large()
    return found or None


def _decode(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _read_length(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise invalid_argument("the length of the body is not a number")
    return int(text)
