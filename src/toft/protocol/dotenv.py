"""Pure: `.env` files, read as the Supabase CLI reads them. On the quick path: cheap standard library only.

Lines are `KEY=value`, optionally after `export`, or `KEY: value`. Values are bare (a ` #` begins a comment),
single-quoted (taken as they are) or double-quoted (with `\\n` and friends); quoted ones may span lines.
Bare and double-quoted values expand `$NAME` and `${NAME}` from the lines above.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LINE = re.compile(
    r"""
    [ \t]* (?:export[ \t]+)? (?P<key>[A-Za-z_][A-Za-z0-9_.]*) [ \t]* (?:=|:[ \t]) [ \t]*
    (?:
        ' (?P<single>[^']*) '                    (?=[ \t]*(?:\#[^\n]*)?(?:\r?\n|\Z))
      | " (?P<double>(?:[^"\\]|\\.)*) "          (?=[ \t]*(?:\#[^\n]*)?(?:\r?\n|\Z))
      | (?! ['"]) (?P<bare>[^\r\n]*)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANK = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)")
_REFERENCE = re.compile(r"\\?\$(?:\{(?P<braced>[A-Za-z0-9_]+)\}|(?P<plain>[A-Za-z0-9_]+))")
_ESCAPE = re.compile(r"\\([^$])", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def parse(text: str) -> tuple[dict[str, str], list[int]]:
    """The variables of one file, and the numbers (from 1) of the lines that make no sense."""
    values: dict[str, str] = {}
    bad_lines: list[int] = []
    at = 1 if text.startswith("\ufeff") else 0
    while at < len(text):
        blank = _BLANK.match(text, at)
        if blank and blank.end() > at:
            at = blank.end()
            continue
        line = _LINE.match(text, at)
        if line is None:
            bad_lines.append(text.count("\n", 0, at) + 1)
            at = text.find("\n", at) + 1 or len(text)
            continue
        values[line["key"]] = _value(line, values)
        at = text.find("\n", line.end()) + 1 or len(text)
    return values, bad_lines


def _value(line: re.Match[str], known: Mapping[str, str]) -> str:
    if line["single"] is not None:
        return line["single"]
    if line["double"] is not None:
        unescaped = _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), line["double"])
        return _expand(unescaped, known)
    bare = line["bare"]
    comment = re.search(r"(?:^|[ \t])#", bare)
    if comment:
        bare = bare[: comment.start()]
    return _expand(bare.strip(), known)


def _expand(value: str, known: Mapping[str, str]) -> str:
    def put(found: re.Match[str]) -> str:
        if found[0].startswith("\\"):
            return found[0][1:]
        return known.get(found["braced"] or found["plain"], "")

    return _REFERENCE.sub(put, value)


def resolve(names: Iterable[str], process: Mapping[str, str], texts: Iterable[str]) -> dict[str, str]:
    """The values of `names`: from the process's own environment, else from the first text that has it.

    An empty value counts as absent, but it hides those that come later, as with the Supabase CLI.
    """
    files: list[Mapping[str, str]] = [process, *(parse(text)[0] for text in texts)]
    found: dict[str, str] = {}
    for name in names:
        value = next((variables[name] for variables in files if name in variables), "")
        if value:
            found[name] = value
    return found
