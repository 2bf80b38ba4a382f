"""Pure: SQL cut into the server's own tokens, for the few questions that need them.

`split.py` reads a text as the Supabase CLI does, peculiarities included; this file reads it as Postgres does,
so that a backslash in a string is not taken for a psql command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\n\f\v]+)
    | (?P<comment>--[^\n]*)
    | (?P<block>/\*)
    | (?P<string>
          [eE]'(?:[^'\\]|\\.|'')*(?:'|\Z)
        | (?:[bBxXnN]|[uU]&)?'(?:[^']|'')*(?:'|\Z)
      )
    | (?P<dollar>\$(?P<tag>(?:[^\W\d]\w*)?)\$)
    | (?P<quoted>(?:[uU]&)?"(?:[^"]|"")*(?:"|\Z))
    | (?P<word>[^\W\d][\w$]*)
    | (?P<number>\.?\d[\w.]*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_EDGE = re.compile(r"/\*|\*/")
_QUIET = frozenset({"space", "comment", "block"})


class Token(msgspec.Struct, frozen=True):
    """kind: `word`, `quoted`, `string`, `dollar`, `number`, or `other` (one character). end: after it."""

    kind: str
    start: int
    end: int


def tokens(text: str, start: int = 0) -> Iterator[Token]:
    """The tokens from `start` on; white space and comments are passed over. An open quote goes to the end."""
    at = start
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:  # `other` takes any character
            return
        kind = found.lastgroup if found.lastgroup != "tag" else "dollar"
        at = found.end()
        if kind == "block":
            at = _end_of_block(text, found.start())
        elif found["dollar"] is not None:
            kind = "dollar"
            closing = text.find(found["dollar"], at)
            at = closing + len(found["dollar"]) if closing >= 0 else len(text)
        if kind is not None and kind not in _QUIET:
            yield Token(kind, found.start(), at)


def first_token(text: str) -> int:
    """Where a statement begins after the comments before it; 0 when there is nothing else."""
    return next((token.start for token in tokens(text)), 0)


def _end_of_block(text: str, start: int) -> int:
    depth = 0
    for edge in _EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)
