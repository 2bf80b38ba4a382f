"""Bodies in Amazon's own framing: each chunk with length and signature, at the end fields about the whole.

Bytes are passed on as they arrive, before the signature of their chunk could be checked: whoever stores them
throws everything away when this raises, so nothing that was not signed is ever kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from toft.storage.s3.errors import (
    incomplete_body,
    invalid_argument,
    malformed_trailer,
    wrong_signature,
)
from toft.storage.s3.sigv4 import Signed, is_same, sign_text

_NOTHING: Final = hashlib.sha256().hexdigest()
_LONGEST_LINE: Final = 4096
_LARGEST_CHUNK: Final = 1024**3
_PREFIX: Final = "STREAMING-"


def is_chunked(payload: str) -> bool:
    """Whether the body is framed, by the word that stands for its digest."""
    return payload.startswith(_PREFIX)


class Chunks:
    """A framed body on its way in. trailers: what came behind it, once everything is read."""

    def __init__(
        self, body: AsyncIterator[bytes], signed: Signed, key: bytes, trailer_names: tuple[str, ...]
    ) -> None:
        match signed.payload:
            case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
                self._is_signed, self._has_trailer = True, False
            case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":
                self._is_signed, self._has_trailer = True, True
            case "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
                self._is_signed, self._has_trailer = False, True
            case _:
                raise invalid_argument(f"x-amz-content-sha256 {signed.payload} is not supported")
        self._body = body
        self._signed = signed
        self._key = key
        self._previous = signed.signature
        self._wanted = trailer_names
        self._buffer = bytearray()
        self.trailers: dict[str, str] = {}

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        while True:
            size, signature = await self._read_head()
            digest = hashlib.sha256()
            rest = size
            while rest:
                piece = await self._read_some(rest)
                rest -= len(piece)
                if self._is_signed:
                    digest.update(piece)
                yield piece
            self._check_chunk(signature, digest.hexdigest())
            if size == 0:
                break
            if await self._read_line() != b"":
                raise incomplete_body()
        await self._finish()

    async def _read_head(self) -> tuple[int, str]:
        length, _, extension = (await self._read_line()).decode("latin-1").partition(";")
        try:
            size = int(length.strip(), 16)
        except ValueError:
            raise incomplete_body() from None
        if not 0 <= size <= _LARGEST_CHUNK:
            raise incomplete_body()
        return size, extension.strip().removeprefix("chunk-signature=")

    def _check_chunk(self, signature: str, digest: str) -> None:
        if self._is_signed:
            kind = "AWS4-HMAC-SHA256-PAYLOAD"
            expected = sign_text(
                self._key, kind, self._signed.date, self._signed.scope, self._previous, _NOTHING, digest
            )
            if not is_same(expected, signature):
                raise wrong_signature()
            self._previous = signature

    async def _finish(self) -> None:
        """Read the fields behind the last chunk, and the empty line that ends everything."""
        signature = ""
        lines = ""
        while line := (await self._read_line(may_end=True)).decode("latin-1"):
            name, colon, value = line.partition(":")
            name = name.strip().lower()
            if not colon or not self._has_trailer:
                raise malformed_trailer()
            if name == "x-amz-trailer-signature":
                signature = value.strip()
            else:
                self.trailers[name] = value.strip()
                lines += f"{name}:{value.strip()}\n"
        while len(self._buffer) < _LONGEST_LINE and await self._fill():
            pass
        if self._buffer.strip(b"\r\n"):
            raise malformed_trailer()
        if not self._has_trailer:
            return
        if any(name not in self.trailers for name in self._wanted) or not self.trailers:
            raise malformed_trailer()
        if self._is_signed:
            kind = "AWS4-HMAC-SHA256-TRAILER"
            digest = hashlib.sha256(lines.encode("latin-1")).hexdigest()
            expected = sign_text(
                self._key, kind, self._signed.date, self._signed.scope, self._previous, digest
            )
            if not is_same(expected, signature):
                raise wrong_signature()

    async def _read_line(self, *, may_end: bool = False) -> bytes:
        while (at := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > _LONGEST_LINE:
                raise incomplete_body()
            if not await self._fill():
                if may_end and not self._buffer:
                    return b""
                raise incomplete_body()
        line = bytes(self._buffer[:at]).removesuffix(b"\r")
        del self._buffer[: at + 1]
        return line

    async def _read_some(self, most: int) -> bytes:
        if not self._buffer and not await self._fill():
            raise incomplete_body()
        piece = bytes(self._buffer[:most])
        del self._buffer[:most]
        return piece

    async def _fill(self) -> bool:
        async for piece in self._body:
            self._buffer += piece
            return True
        return False
