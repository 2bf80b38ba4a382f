"""What a client says its bytes add up to, compared with what arrived."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from toft.http.message import Headers
from toft.storage.s3.errors import wrong_digest

_HEX: Final = re.compile(r"[0-9a-fA-F]{64}")
CHECKSUM_PREFIX: Final = "x-amz-checksum-"


class Running(Protocol):
    """A digest that is being made."""

    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, data: bytes, /) -> None:
        self._value = zlib.crc32(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(4, "big")


#: those that are verified; the others (crc32c, crc64nvme) have no quick and kept implementation here
_MAKERS: Final[Mapping[str, Callable[[], Running]]] = {
    "crc32": _Crc32,
    "sha1": lambda: hashlib.sha1(usedforsecurity=False),
    "sha256": hashlib.sha256,
}


class Expectations:
    """Digests that a request announces, in its head or behind its body."""

    def __init__(self, headers: Headers, payload: str, trailer_names: tuple[str, ...]) -> None:
        self._running: dict[str, Running] = {}
        self._expected: dict[str, bytes | None] = {}
        if _HEX.fullmatch(payload):
            self._expect("x-amz-content-sha256", hashlib.sha256(), bytes.fromhex(payload))
        md5 = headers.get(b"content-md5")
        if md5 is not None:
            self._expect("content-md5", hashlib.md5(usedforsecurity=False), _decode(md5))
        for name, make in _MAKERS.items():
            field = CHECKSUM_PREFIX + name
            told = headers.get(field.encode())
            if told is not None:
                self._expect(field, make(), _decode(told))
            elif field in trailer_names:
                self._expect(field, make(), None)

    def update(self, data: bytes) -> None:
        """Count bytes that arrived."""
        for running in self._running.values():
            running.update(data)

    def check(self, trailers: Mapping[str, str]) -> None:
        """Raise unless everything adds up."""
        for name, running in self._running.items():
            expected = self._expected[name]
            if expected is None:
                expected = _decode(trailers.get(name, ""))
            if running.digest() != expected:
                raise wrong_digest(name)

    def _expect(self, name: str, running: Running, expected: bytes | None) -> None:
        self._running[name] = running
        self._expected[name] = expected


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""
