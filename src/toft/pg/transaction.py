"""Pure: a pipeline as an explicit transaction, for access mode, isolation and a wished rollback.

The implicit transaction of a pipeline is enough for everything else and costs two statements less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toft.pg.wire import Statement

type Isolation = Literal["read committed", "repeatable read", "serializable"]


def transaction(
    statements: Sequence[Statement],
    *,
    isolation: Isolation = "read committed",
    read_only: bool = False,
    rollback: bool = False,
) -> list[Statement]:
    """`statements` between BEGIN and COMMIT (or ROLLBACK), to be sent as one pipeline.

    The results, and a failure's `statement_index`, count BEGIN as number 0.
    """
    mode = "read only" if read_only else "read write"
    begin = f"begin isolation level {isolation} {mode}".encode()
    end = b"rollback" if rollback else b"commit"
    return [Statement(begin, (), begin), *statements, Statement(end, (), end)]
