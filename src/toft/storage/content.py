"""What an upload brings: bytes on their way, their type, and what is to be remembered of them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec

from toft.storage.call import Call
from toft.storage.errors import invalid_request
from toft.storage.form import Form
from toft.storage.names import DEFAULT_TYPE, read_content_type

NO_CACHE = "no-cache"
LARGEST_USER_METADATA_BYTES = 1024 * 1024
#: fields, boundaries and headers of a form
LARGEST_OVERHEAD_BYTES = 2 * 1024 * 1024

_ROBOTS_WORDS = frozenset(
    {"all", "noindex", "nofollow", "none", "nosnippet", "indexifembedded", "notranslate", "noimageindex",
     "noarchive", "nocache"}
)  # fmt: skip
_ROBOTS_VALUES = re.compile(
    r"(?:max-snippet:\s*-?\d+|max-image-preview:\s*(?:none|standard|large)|max-video-preview:\s*-?\d+"
    r"|unavailable_after:\s*.+)"
)


class Upload:
    """An upload. `declared_bytes` is what the client announced, None when it did not say."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._form: Form | None = None
        self.content_type = ""
        self.cache_control = NO_CACHE
        self.user_metadata: dict[str, Any] | None = None
        self.robots = check_robots_tag(call.header(b"x-robots-tag"))
        announced = call.header(b"content-length") or ""
        self.declared_bytes = int(announced) if announced.isascii() and announced.isdecimal() else None

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        """The object's bytes."""
        return self._form.file_chunks() if self._form is not None else aiter(self._call.request.body)

    @property
    def overhead_bytes(self) -> int:
        """How much of the announced length may be something else than the object."""
        return LARGEST_OVERHEAD_BYTES if self._form is not None else 0

    async def open(self) -> None:
        """Read as far as the first byte of the object."""
        header = self._call.header(b"content-type") or ""
        if header.lower().startswith("multipart/form-data"):
            self._form = Form(header, aiter(self._call.request.body))
            if not await self._form.open_file():
                raise invalid_request("No content provided", "InvalidRequest")
            self._read_form(self._form)
        else:
            self.content_type = read_content_type(header or DEFAULT_TYPE)
            self.cache_control = self._call.header(b"cache-control") or NO_CACHE
            self.user_metadata = decode_user_metadata(self._call.header(b"x-metadata"))

    async def finish(self) -> None:
        """All bytes are there: read what may come after them."""
        if self._form is not None:
            await self._form.finish()
            self._read_form(self._form)

    def _read_form(self, form: Form) -> None:
        seconds = form.fields.get("cacheControl")
        self.cache_control = f"max-age={seconds}" if seconds else NO_CACHE
        self.content_type = read_content_type(
            form.fields.get("contentType") or form.file_type or DEFAULT_TYPE
        )
        text = form.fields.get("metadata") or form.fields.get("userMetadata")
        self.user_metadata = parse_user_metadata(text)


def parse_user_metadata(text: str | bytes | None) -> dict[str, Any] | None:
    """A JSON object; what is none, or too long, is silently ignored."""
    if not text or len(text) > LARGEST_USER_METADATA_BYTES:
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(value, dict) or "\\u0000" in msgspec.json.encode(value).decode():
        return None
    return cast("dict[str, Any]", value)


def decode_user_metadata(header: str | None) -> dict[str, Any] | None:
    """The same, in base64, as a header carries it."""
    if not header:
        return None
    try:
        return parse_user_metadata(base64.b64decode(header + "=" * (-len(header) % 4), altchars=b"-_"))
    except (binascii.Error, ValueError):
        return None


def check_robots_tag(header: str | None) -> str | None:
    """The header for search engines, if all its words are known. Raises otherwise."""
    if not header:
        return None
    for part in header.split(","):
        word = part.strip().lower()
        name, _, rest = word.partition(":")
        if rest and _is_crawler(name):
            word = rest.strip()
        if word not in _ROBOTS_WORDS and not _ROBOTS_VALUES.fullmatch(word):
            raise invalid_request("Invalid X-Robots-Tag header", "invalid_x_robots_tag")
    return header


def _is_crawler(name: str) -> bool:
    return name not in ("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after")
