"""Pure: finds what only psql understands, so that a file is refused with its line and the reason.

Postgres itself would answer with a bare syntax error (psql's backslash commands) or a broken protocol
(COPY FROM stdin, whose rows follow the statement in the file). The Supabase CLI fails on both as well.
"""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec

from toft.migrate.lex import Token, tokens

_COMMAND = re.compile(r"\\(?:[A-Za-z_]+\+?|[!?.])")
_AFTER_STATEMENT = re.compile(r"\\(?:g|watch|crosstab|bind|parse)")

_ADVICE = {
    "restrict": "delete the `\\restrict` and `\\unrestrict` lines that pg_dump writes",
    "unrestrict": "delete the `\\restrict` and `\\unrestrict` lines that pg_dump writes",
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


def find_psql(text: str) -> PsqlOnly | None:
    """The first psql command or COPY FROM stdin of a file."""
    if not _has_sign(text):
        return None
    statement: list[Token] = []  # the first tokens of the current statement
    for token in tokens(text):
        if token.kind == "other":
            mark = text[token.start]
            if mark == ";":
                if is_copy_from_stdin(text, statement):
                    break
                statement = []
                continue
            if mark == "\\" and (command := _COMMAND.match(text, token.start)):
                return _psql_command(token.start, command[0])
        if not statement or text[statement[0].start : statement[0].end].lower() == "copy":
            statement.append(token)
    if is_copy_from_stdin(text, statement):
        return PsqlOnly(
            statement[0].start,
            "`COPY ... FROM stdin` takes its rows from psql; a migration has no such stream",
            "write the rows as INSERT statements (`pg_dump --inserts` does)",
        )
    return None


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


def _psql_command(start: int, command: str) -> PsqlOnly:
    name = command[1:].rstrip("+").lower()
    advice = _ADVICE.get(name, "delete the line, or say the same in SQL")
    return PsqlOnly(start, f"`{command}` is a command of psql, not SQL", advice)


def is_copy_from_stdin(text: str, statement: list[Token]) -> bool:
    """Whether the tokens of a statement are those of `COPY table FROM stdin`."""
    words = [text[token.start : token.end].lower() for token in statement]
    if not words or words[0] != "copy":
        return False
    return any(before == "from" and word in {"stdin", "stdout"} for before, word in pairwise(words))
