"""Pure: in which portions the statements of a file are sent, which decides what a failure leaves behind.

The rules are those of the Supabase CLI. Statements that go together are one pipeline with one sync, hence one
implicit transaction. It is *not* a transaction block: LOCK TABLE, SAVEPOINT and their like fail in it, as
there. A statement that goes alone is a simple query, and outside a transaction unless the file began one.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence

import msgspec

from toft.migrate.split import Piece

_MARKER = "-- pg-delta: transaction=false"
_BLANKS = " \t\n\r\ufeff"

#: statements by which a file governs its own transactions
_TRANSACTION = re.compile(
    r"(?:begin|start\s+transaction|commit|end|abort|prepare\s+transaction|rollback)(?:\s|\Z)", re.IGNORECASE
)
_TO_SAVEPOINT = re.compile(r"rollback\s+(?:(?:work|transaction)\s+)?to(?:\s|\Z)", re.IGNORECASE)
#: statements that the server refuses inside a transaction, or that the CLI treats so
_ALONE = re.compile(
    r"create\s+(?:unique\s+)?index\s+concurrently(?:\s|\Z)"
    r"|drop\s+index\s+concurrently(?:\s|\Z)"
    r"|reindex(?:\s|\().*\sconcurrently(?:\s|\Z)"
    r"|vacuum(?:\s|\(|\Z)"
    r"|cluster(?:\s|\Z)"
    r"|alter\s+system(?:\s|\Z)",
    re.IGNORECASE,
)
#: SET and its kin, but for what ends with the transaction and for roles, which are no settings to RESET ALL
_SETTING = re.compile(
    r"set\s+(?!(?:local|constraints|transaction|role|(?:session\s+)?(?:role|authorization|characteristics))\b)"
    r"|reset\s+(?!(?:role|session)\b)"
    r"|select\s+(?:pg_catalog\s*\.\s*)?set_config\s*\(",
    re.IGNORECASE,
)


class Mode(enum.Enum):
    """How a file is sent as a whole; reports name it so."""

    ONE = "one"
    SPLIT = "split"
    PER_STATEMENT = "per_statement"


class Batch(msgspec.Struct, frozen=True):
    """The statements from `first` up to, not including, `end`. is_alone: one, as a simple query."""

    first: int
    end: int
    is_alone: bool = False


class Sending(msgspec.Struct, frozen=True):
    """All batches of a file. The history row goes with the last one, never alone, perhaps empty."""

    mode: Mode
    batches: tuple[Batch, ...]


def decide_sending(text: str, pieces: Sequence[Piece]) -> Sending:
    """The batches for a file whose statements are `pieces`."""
    first_line = text.removeprefix("\ufeff").partition("\n")[0]
    bodies = [strip_comments(piece.text) for piece in pieces]
    if first_line.removesuffix("\r") == _MARKER or any(map(governs_transaction, bodies)):
        singles = (Batch(index, index + 1, is_alone=True) for index in range(len(pieces)))
        return Sending(Mode.PER_STATEMENT, (*singles, Batch(len(pieces), len(pieces))))

    batches: list[Batch] = []
    first = 0
    for index, body in enumerate(bodies):
        if _ALONE.match(body):
            if first < index:
                batches.append(Batch(first, index))
            batches.append(Batch(index, index + 1, is_alone=True))
            first = index + 1
    batches.append(Batch(first, len(pieces)))
    return Sending(Mode.SPLIT if len(batches) > 1 else Mode.ONE, tuple(batches))


def governs_transaction(body: str) -> bool:
    """Whether a statement (without comments before it) begins or ends a transaction."""
    return _TRANSACTION.match(body) is not None and _TO_SAVEPOINT.match(body) is None


def session_settings(pieces: Sequence[Piece]) -> list[str]:
    """The statements of a file that change settings of the session, and so meet the seeds after it."""
    bodies = (strip_comments(piece.text) for piece in pieces)
    return [body for body in bodies if _SETTING.match(body)]


def strip_comments(text: str) -> str:
    """A statement without the comments before it. The CLI ends a block comment at the first `*/`."""
    text = text.lstrip(_BLANKS)
    while True:
        if text.startswith("--"):
            text = text.partition("\n")[2]
        elif text.startswith("/*") and "*/" in text:
            text = text.partition("*/")[2]
        else:
            return text
        text = text.lstrip(_BLANKS)
