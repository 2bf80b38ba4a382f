"""Pure: how a Postgres client opens a conversation, and how a server refuses one."""

from __future__ import annotations

import enum
from typing import Final

_LONGEST: Final = 10_000  # the server's own limit for a start-up packet
_SSL_CODE: Final = 80877103
_GSS_CODE: Final = 80877104
_CANCEL_CODE: Final = 80877102

#: The answer to a wish for encryption.
NO_ENCRYPTION: Final = b"N"


class Opening(enum.Enum):
    """What the first packet is."""

    INCOMPLETE = "incomplete"
    ENCRYPTION = "encryption"
    CANCEL = "cancel"
    STARTUP = "startup"
    UNKNOWN = "unknown"


def read_opening(data: bytes) -> tuple[Opening, int]:
    """The kind and size of the packet that `data` begins with."""
    if len(data) < 8:
        return Opening.INCOMPLETE, 0
    size = int.from_bytes(data[:4], "big")
    code = int.from_bytes(data[4:8], "big")
    if not 8 <= size <= _LONGEST:
        return Opening.UNKNOWN, size
    if len(data) < size:
        return Opening.INCOMPLETE, size
    if code in (_SSL_CODE, _GSS_CODE):
        return Opening.ENCRYPTION, size
    if code == _CANCEL_CODE:
        return Opening.CANCEL, size
    return (Opening.STARTUP if code >> 16 == 3 else Opening.UNKNOWN), size


def fatal(sqlstate: str, message: str) -> bytes:
    """An ErrorResponse after which the connection is closed."""
    fields = f"SFATAL\0VFATAL\0C{sqlstate}\0M{message}\0\0".encode()
    return b"E" + (len(fields) + 4).to_bytes(4, "big") + fields


def is_between_messages(last: bytes) -> bool:
    """Whether what the server said last ends with ReadyForQuery, so that a message may follow."""
    return last[:5] == b"Z\0\0\0\x05" and len(last) == 6
