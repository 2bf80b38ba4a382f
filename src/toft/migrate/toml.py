"""Pure: a TOML text is read as far as it goes, and what is left out is said with its line.

A project whose config.toml has one bad line must still get its backend. So when the whole text does not
parse, its sections are parsed one by one, and within a section the lines that do not parse are dropped.
"""

from __future__ import annotations

import re
import tomllib
from typing import cast

import msgspec

type Table = dict[str, object]

#: after so many, a text is taken for something else than TOML, and what is left of it is not read
_MOST_FAULTS = 50
_HEADER = re.compile(r"[ \t]*\[{1,2}[ \t]*[A-Za-z_]")
_HEADER_KEYS = re.compile(r"""[ \t]*\[{1,2}([^\[\]]+)\]""")
_KEY = re.compile(r"""\s*"([^"]*)"\s*|\s*'([^']*)'\s*|\s*([\w-]+)\s*""")
_ASSIGNMENT = re.compile(
    r"""[ \t]*((?:"[^"]*"|'[^']*'|[\w-]+)(?:[ \t]*\.[ \t]*(?:"[^"]*"|'[^']*'|[\w-]+))*)[ \t]*="""
)
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_PLACE = re.compile(r"\s*\(at [^()]*\)$")


class Fault(msgspec.Struct, frozen=True):
    """One thing that does not parse: its line in the text and the parser's words."""

    line: int
    reason: str


def read_toml(text: str) -> tuple[Table, list[Fault]]:
    """The tables of the text, and the faults met on the way, in the order of their lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        return tomllib.loads(text), []
    except (tomllib.TOMLDecodeError, RecursionError) as refusal:
        whole: Table = {}
        faults: list[Fault] = []
        for start, lines in _sections(text):
            lay_over(whole, _read_section(start, lines, faults))
        # Sections that are sound one by one and not together: one of them comes twice.
        return whole, faults or [_fault(refusal, text.count("\n") + 1)]


def _sections(text: str) -> list[tuple[int, list[str]]]:
    """Number of the first line and the lines of each section; the first one may be empty."""
    sections: list[tuple[int, list[str]]] = [(1, [])]
    for number, line in enumerate(text.split("\n"), start=1):
        if _HEADER.match(line):
            sections.append((number, []))
        sections[-1][1].append(line)
    return sections


def _read_section(start: int, lines: list[str], faults: list[Fault]) -> Table:
    lines = list(lines)
    while any(lines) and len(faults) < _MOST_FAULTS:  # each round empties at least one of them
        try:
            return tomllib.loads("\n".join(lines))
        except (tomllib.TOMLDecodeError, RecursionError) as refusal:
            fault = _fault(refusal, len(lines))
            filled = [index for index, line in enumerate(lines) if line]
            bad = max((index for index in filled if index < fault.line), default=filled[0])
            first = _start_of_value(lines, bad)
            faults.append(Fault(start + bad, fault.reason))
            if first == 0 and _HEADER.match(lines[0]):
                return {}  # without its name, a section says nothing
            lines[first : bad + 1] = [""] * (bad + 1 - first)
    return {}


def _fault(refusal: Exception, last_line: int) -> Fault:
    """The parser tells the line in its words, or that it met the end of the text."""
    place = _AT_LINE.search(str(refusal))
    line = min(int(place[1]), last_line) if place else last_line
    return Fault(line, _PLACE.sub("", str(refusal)))


def _start_of_value(lines: list[str], bad: int) -> int:
    """The line of the assignment that the bad line belongs to: itself, or an incomplete one before it."""
    for index in range(bad, -1, -1):
        if _ASSIGNMENT.match(lines[index]):
            return index if index == bad or not _is_complete(lines[index:bad]) else bad
    return bad


def _is_complete(lines: list[str]) -> bool:
    try:
        tomllib.loads("\n".join(lines))
    except (tomllib.TOMLDecodeError, RecursionError):
        return False
    return True


def as_table(value: object) -> Table | None:
    """The value if it is a table."""
    return cast(Table, value) if isinstance(value, dict) else None


def as_list(value: object) -> list[object] | None:
    """The value if it is an array."""
    return cast(list[object], value) if isinstance(value, list) else None


def lay_over(tables: Table, more: Table) -> None:
    """What `more` says counts; tables are laid into tables."""
    for key, value in more.items():
        below, above = as_table(tables.get(key)), as_table(value)
        if below is not None and above is not None:
            lay_over(below, above)
        else:
            tables[key] = value


def line_of(text: str, path: tuple[str, ...]) -> int:
    """The line where a key or a table is written, by eye; 1 when it cannot be told."""
    section: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER_KEYS.match(line):
            section = _keys(header[1])
            if section[: len(path)] == path:
                return number
        elif assignment := _ASSIGNMENT.match(line):
            full = (*section, *_keys(assignment[1]))
            if full[: len(path)] == path:
                return number
    return 1


def _keys(dotted: str) -> tuple[str, ...]:
    return tuple(next(name for name in key.groups() if name is not None) for key in _KEY.finditer(dotted))
