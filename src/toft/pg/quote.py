"""Pure: names and texts made safe to stand inside SQL."""

from __future__ import annotations


def identifier(name: str) -> str:
    """`name` as a quoted identifier.

    >>> print(identifier('a "b" c'))
    "a ""b"" c"
    """
    if "\0" in name:
        raise ValueError("an identifier cannot hold a NUL character")
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    r"""`text` as a string literal, whatever `standard_conforming_strings` says.

    >>> print(literal("it's"))
    'it''s'
    >>> print(literal("a\\b"))
     E'a\\b'
    """
    if "\0" in text:
        raise ValueError("a text cannot hold a NUL character")
    quoted = "'" + text.replace("'", "''") + "'"
    if "\\" in quoted:
        # The leading space keeps the E from joining a word before it.
        return " E" + quoted.replace("\\", "\\\\")
    return quoted
