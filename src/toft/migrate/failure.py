"""Pure: a server's error becomes a place in the file as it lies in the project, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from toft.errors.project import MigrationFailed
from toft.migrate.advice import advise
from toft.migrate.lex import first_token, tokens
from toft.migrate.place import line_and_column
from toft.migrate.project import SqlFile
from toft.migrate.split import Piece
from toft.pg.sqlstate import PostgresError

_IN_DO_BLOCK = re.compile(r"^PL/pgSQL function inline_code_block line (\d+)", re.MULTILINE)
_WIDTH = 110
_LINES_BEFORE = 2


class Outcome(msgspec.Struct, frozen=True):
    """What the failure leaves of the file. kept: so many of its statements stay in force."""

    kept: int = 0
    #: why the statement was not elevated, when it asked for that
    refusal: str | None = None
    #: what the search path was, when an earlier file had emptied it
    search_path: str | None = None


def migration_failed(
    file: SqlFile, pieces: Sequence[Piece], index: int, sent: str, error: PostgresError, outcome: Outcome
) -> MigrationFailed:
    """The error to raise for statement `index`, of which `sent` was sent.

    index: counted from 0, as by the Supabase CLI; after the statements come the history row and the commit.
    """
    if index < len(pieces):
        line, column = locate(file, pieces[index], sent, error)
        excerpt = point_at(file.text, line, column)
    else:
        line, column, excerpt = 1, 1, ""
    statement = pieces[index].text if index < len(pieces) else ""
    return MigrationFailed(
        file=file.path,
        line=line,
        column=column,
        text=error.message,
        sqlstate=error.sqlstate,
        statement=index,
        detail=error.detail,
        hint=error.hint,
        where=error.where,
        excerpt=excerpt,
        kept=outcome.kept,
        advice=advise(error, statement, refusal=outcome.refusal, search_path=outcome.search_path),
    )


def locate(file: SqlFile, piece: Piece, sent: str, error: PostgresError) -> tuple[int, int]:
    """Line and column in the file. sent: the piece's text, or what was sent in its place, line for line."""
    offset = _offset_in(sent, error)
    if offset is None:
        return line_and_column(file.text, piece.start + first_token(piece.text))
    if sent == piece.text:
        return line_and_column(file.text, piece.start + offset)
    line, column = line_and_column(sent, offset)
    first_line, first_column = line_and_column(file.text, piece.start)
    return first_line + line - 1, column if line > 1 else column + first_column - 1


def _offset_in(sent: str, error: PostgresError) -> int | None:
    if error.position:
        return error.position - 1
    block = _IN_DO_BLOCK.search(error.where or "")
    line_start = _line_of_block(sent, int(block[1])) if block else None
    if error.internal_query and error.internal_position:
        # An expression of a DO block, or its whole body: the server quotes it as it stands in the text.
        found = sent.find(error.internal_query, line_start or 0)
        if found >= 0 and (line_start is not None or sent.find(error.internal_query, found + 1) < 0):
            return found + error.internal_position - 1
    return line_start


def _line_of_block(sent: str, line: int) -> int | None:
    """The offset of the first token on a line of a DO block's body."""
    body = next((token for token in tokens(sent) if token.kind in {"dollar", "string"}), None)
    if body is None:
        return None
    at = body.start
    for _ in range(line - 1):
        at = sent.find("\n", at, body.end) + 1
        if at == 0:
            return None
    return at + len(sent[at:]) - len(sent[at:].lstrip(" \t")) if line > 1 else body.start


def point_at(text: str, line: int, column: int) -> str:
    """The line with those before it, numbered, and a caret under the column. Long lines are cut around it."""
    lines = text.split("\n")
    first = max(1, line - _LINES_BEFORE)
    digits = len(str(line))
    cut = max(0, column - _WIDTH // 2) if len(lines[line - 1]) > _WIDTH else 0
    shown = [
        f"{number:>{digits}} | {_fit(lines[number - 1], cut if number == line else 0)}"
        for number in range(first, line + 1)
    ]
    return "\n".join([*shown, " " * digits + " | " + " " * (column - 1 - cut) + "^"])


def _fit(line: str, cut: int) -> str:
    """One line of an excerpt; tabs become single spaces so that the caret stands right."""
    return line.rstrip("\r")[cut : cut + _WIDTH].replace("\t", " ").rstrip()
