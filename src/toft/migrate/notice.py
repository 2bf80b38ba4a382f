"""Pure: something that a user should hear and that stops nothing."""

from __future__ import annotations

import msgspec


class Notice(msgspec.Struct, frozen=True):
    """One sentence without a full stop. level: `warning` (probably not what you meant) or `info`."""

    level: str
    text: str

    def __str__(self) -> str:
        return self.text


def warning(text: str) -> Notice:
    """Something is probably not as it was meant."""
    return Notice("warning", text)


def info(text: str) -> Notice:
    """Something was done that is worth knowing."""
    return Notice("info", text)
