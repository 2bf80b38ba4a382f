"""Pure: a file's statements.

Cut where the Supabase CLI cuts, with psql's own things understood before that.
"""

from __future__ import annotations

import msgspec

from toft.migrate.lex import first_token
from toft.migrate.psql_commands import PsqlOnly, understand
from toft.migrate.split import Piece, split


def cut(text: str) -> list[Piece]:
    """The statements of a file that `read_file` has let pass, each COPY FROM stdin with its rows."""
    understood = understand(text)
    if isinstance(understood, PsqlOnly):
        return split(text)
    pieces = split(understood.sql)
    if not understood.rows:
        return pieces
    rows = {each.start: text[each.first : each.end] for each in understood.rows}
    return [
        msgspec.structs.replace(piece, rows=rows.get(piece.start + first_token(piece.text)))
        for piece in pieces
    ]
