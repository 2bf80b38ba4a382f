"""Pure: from an offset in a text to what an editor shows: line and column from 1, counted in characters."""

from __future__ import annotations


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The place of a character. The end of the text is a place too."""
    offset = max(0, min(offset, len(text)))
    line_start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - line_start + 1
