"""Pure: what only psql understands in a file: done where it is harmless, else refused with line and reason.

Dumps and scripts that were written for psql hold two things that are no SQL: backslash commands, and COPY
FROM stdin with its rows behind it. The Supabase CLI fails on both. Commands that change nothing but psql's
own ways are passed over here, and the rows of a COPY are sent with it. All that is taken out becomes
spaces, so that every other character keeps its place.
"""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec

from toft.migrate.lex import Token, tokens

_COMMAND = re.compile(r"\\(?:[A-Za-z_]+\+?|[!?.])")
_AFTER_STATEMENT = re.compile(r"\\(?:g|watch|crosstab|bind|parse)")
_VISIBLE = re.compile(r"[^\r\n]")
_END_OF_ROWS = re.compile(r"^\\\.[ \t\r]*$", re.MULTILINE)

#: they change what psql shows, or guard against what cannot happen here
_HARMLESS = frozenset({
    "a", "conninfo", "echo", "errverbose", "f", "h", "pset", "qecho", "restrict", "t", "timing", "unrestrict",
    "warn", "x",
})  # fmt: skip
#: `\set` of these changes how psql runs a file, always towards what happens here anyway
_OWN_VARIABLES = re.compile(r"\s+(?:ON_ERROR_STOP|ON_ERROR_ROLLBACK|QUIET|ECHO|VERBOSITY|SHOW_CONTEXT)\b")
_UTF8 = re.compile(r"\s+['\"]?utf-?8['\"]?\s*", re.IGNORECASE)
#: the same database, as the same role
_SAME_PLACE = re.compile(r"\s+(?:-reuse-previous=on\s+)?[\"']*(?:dbname=)?'?(?:-|postgres)[\"']*(?:\s+-)*\s*")

_ADVICE = {
    "connect": "delete it: a migration always runs in the database `postgres`, as the role `postgres`",
    "c": "delete it: a migration always runs in the database `postgres`, as the role `postgres`",
    "i": "paste the other file's statements here, or make it a migration of its own",
    "ir": "paste the other file's statements here, or make it a migration of its own",
    "include": "paste the other file's statements here, or make it a migration of its own",
    "copy": "write the rows as INSERT statements",
    "set": "write the value where the variable is used",
    "gexec": "put the statements into a DO block that runs them with EXECUTE",
}


class PsqlOnly(msgspec.Struct, frozen=True):
    """What was found, where (in characters of the text), and what to do about it."""

    start: int
    cause: str
    advice: str


class Rows(msgspec.Struct, frozen=True):
    """What follows a COPY FROM stdin. start: of the statement. The rows are the text from first to end."""

    start: int
    first: int
    end: int


class Understood(msgspec.Struct, frozen=True):
    """A file as psql reads it. sql: the text with spaces for all that is no SQL. passed_over: commands."""

    sql: str
    rows: tuple[Rows, ...] = ()
    passed_over: tuple[tuple[int, str], ...] = ()


def understand(text: str) -> Understood | PsqlOnly:
    """The SQL of a file and the rows of its COPYs, or the first thing in it that cannot be done here."""
    if not _has_sign(text):
        return Understood(text)
    rows: list[Rows] = []
    passed_over: list[tuple[int, str]] = []
    holes: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        found = _next(text, at)
        if found is None:
            break
        if isinstance(found, PsqlOnly):
            return found
        if isinstance(found, Rows):
            rows.append(found)
            after = _END_OF_ROWS.search(text, found.end)
            at = after.end() if after else len(text)
            holes.append((found.first, at))
        else:
            start, command = found
            at = _end_of_line(text, start)
            passed_over.append((start, command))
            holes.append((start, at))
    return Understood(_blank(text, holes), tuple(rows), tuple(passed_over))


def _next(text: str, at: int) -> Rows | tuple[int, str] | PsqlOnly | None:
    """The next psql command or COPY FROM stdin."""
    statement: list[Token] = []  # the first tokens of the current statement
    for token in tokens(text, at):
        if token.kind == "other":
            mark = text[token.start]
            if mark == ";":
                if is_copy_from_stdin(text, statement):
                    return _rows(text, statement[0].start, token.end)
                statement = []
                continue
            if mark == "\\" and (command := _COMMAND.match(text, token.start)):
                return _command(text, token.start, command[0], in_statement=bool(statement))
        if not statement or text[statement[0].start : statement[0].end].lower() == "copy":
            statement.append(token)
    if is_copy_from_stdin(text, statement):
        return PsqlOnly(
            statement[0].start,
            "`COPY ... FROM stdin` has no rows: the file ends with it",
            "write `;`, the rows, and a line `\\.` after it",
        )
    return None


def _rows(text: str, start: int, end: int) -> Rows | PsqlOnly:
    """The rows of a COPY begin on the line after it."""
    first = _end_of_line(text, end)
    if text[end:first].strip():
        return PsqlOnly(
            end, "something follows `COPY ... FROM stdin;` on its line", "let its rows begin on the next line"
        )
    first = min(first + 1, len(text))
    last = _END_OF_ROWS.search(text, first)
    return Rows(start, first, last.start() if last else len(text))


def _command(text: str, start: int, command: str, *, in_statement: bool) -> tuple[int, str] | PsqlOnly:
    name = command[1:].rstrip("+").lower()
    rest = text[start + len(command) : _end_of_line(text, start)]
    is_harmless = (
        name in _HARMLESS
        or (name == "set" and _OWN_VARIABLES.match(rest) is not None)
        or (name == "encoding" and _UTF8.fullmatch(rest) is not None)
        or (name in {"c", "connect"} and _SAME_PLACE.fullmatch(rest) is not None)
    )
    if is_harmless and not in_statement:
        return start, command
    advice = _ADVICE.get(name, "delete the line, or say the same in SQL")
    return PsqlOnly(start, f"`{command}` is a command of psql, not SQL", advice)


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _blank(text: str, holes: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end in holes:
        parts += [text[at:start], _VISIBLE.sub(" ", text[start:end])]
        at = end
    return "".join([*parts, text[at:]])


def _has_sign(text: str) -> bool:
    """Whether a file deserves the slower reading: few do, and some are very large."""
    lower = text.lower()
    if "stdin" in lower or "stdout" in lower:
        return True
    for found in _COMMAND.finditer(text):
        line_start = text.rfind("\n", 0, found.start()) + 1
        if not text[line_start : found.start()].strip() or _AFTER_STATEMENT.match(text, found.start()):
            return True
    return False


def is_copy_from_stdin(text: str, statement: list[Token]) -> bool:
    """Whether the tokens of a statement are those of `COPY table FROM stdin`."""
    words = [text[token.start : token.end].lower() for token in statement]
    if not words or words[0] != "copy":
        return False
    return any(before == "from" and word in {"stdin", "stdout"} for before, word in pairwise(words))
