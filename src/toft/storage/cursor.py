"""Pure: where a page of a listing ended, as the opaque text that the next request brings back."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime

import msgspec

from toft.storage.errors import invalid_parameter

COLUMNS = ("name", "created_at", "updated_at")


class Cursor(msgspec.Struct, frozen=True):
    """The last entry told, and in which order it was told. at: its time when the order is by one."""

    last_name: str
    order: str = "asc"
    column: str = "name"
    at: str = ""


def encode_cursor(cursor: Cursor) -> str:
    """Base64 of one line for each part."""
    parts = [("l", cursor.last_name), ("o", cursor.order), ("c", cursor.column), ("a", cursor.at)]
    text = "\n".join(f"{letter}:{value}" for letter, value in parts if value)
    return base64.b64encode(text.encode()).decode()


def decode_cursor(text: str) -> Cursor | None:
    """What was encoded; None for an empty text. Raises `StorageError` for anything else."""
    if not text:
        return None
    try:
        lines = base64.b64decode(text, validate=True).decode().split("\n")
    except (binascii.Error, ValueError):
        raise invalid_parameter("continuation token") from None
    parts = {line[:1]: line[2:] for line in lines if line[1:2] == ":"}
    cursor = Cursor(
        last_name=parts.get("l", ""),
        order=parts.get("o", "asc"),
        column=parts.get("c", "name"),
        at=parts.get("a", ""),
    )
    is_timed = cursor.column != "name"
    if not cursor.last_name or "\0" in text or len(parts) != len(lines):
        raise invalid_parameter("continuation token")
    if (
        cursor.order not in ("asc", "desc")
        or cursor.column not in COLUMNS
        or not _is_instant(cursor, is_timed)
    ):
        raise invalid_parameter("continuation token")
    return cursor


def _is_instant(cursor: Cursor, is_timed: bool) -> bool:
    if not is_timed:
        return True
    try:
        datetime.fromisoformat(cursor.at)
    except ValueError:
        return False
    return True
