"""Pure: role statements inside a DO block, each replaced by a call that may do it.

`do $$ begin if not exists (...) then create role x; end if; end $$` is how most projects make a role. The
block itself must run as `postgres`; only the statements that `elevate.py` lets through are replaced, line for
line. Those that a block puts together (`execute format(...)`) are not known before and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from toft.migrate.batches import strip_comments
from toft.migrate.elevate import Elevation, Refusal
from toft.migrate.lex import Token, tokens

_DO = re.compile(r"do\b", re.IGNORECASE)
_SIGN = re.compile(r"\b(?:role|user|group|grant|revoke|publication)\b", re.IGNORECASE)
_OPENERS = frozenset({"begin", "then", "else", "loop"})
_VERBS = frozenset({"create", "alter", "drop", "grant", "revoke", "comment", "execute"})
_DOLLARS = re.compile(r"\$\w*\$")


class Rewritten(msgspec.Struct, frozen=True):
    """The block to send, and what its calls do. refusal: the first statement that was not let through."""

    text: str
    elevations: tuple[Elevation, ...]
    refusal: Refusal | None


def rewrite_do_block(
    statement: str, decide: Callable[[str], Elevation | Refusal | None], call: Callable[[int], str]
) -> Rewritten | None:
    """call(n): the SQL expression that does the n-th elevation. None: there is nothing in it for us."""
    if not _DO.match(strip_comments(statement)) or not _SIGN.search(statement):
        return None
    body = next((token for token in tokens(statement) if token.kind == "dollar"), None)
    if body is None:
        return None
    out: list[str] = []
    elevations: list[Elevation] = []
    refusal: Refusal | None = None
    at = 0
    for start, end, sql in _statements(statement, body):
        decision = decide(sql)
        if isinstance(decision, Elevation):
            lines = "\n" * statement.count("\n", start, end)
            out += [statement[at:start], "perform ", call(len(elevations)), lines]
            elevations.append(decision)
            at = end
        elif refusal is None:
            refusal = decision
    if not elevations and refusal is None:
        return None
    return Rewritten("".join((*out, statement[at:])), tuple(elevations), refusal)


def _statements(text: str, body: Token) -> Iterator[tuple[int, int, str]]:
    """Start, end and SQL of the statements in a body that could be ours, by their first word."""
    dollars = _DOLLARS.match(text, body.start)
    if dollars is None:
        return
    at_start = True
    first: Token | None = None
    second: Token | None = None
    for token in tokens(text[: body.end - len(dollars[0])], dollars.end()):
        word = _word(text, token)
        if first is not None:
            if word == ";":
                if sql := _static_sql(text, first, second, token):
                    yield first.start, token.start, sql
                first, second, at_start = None, None, True
            elif second is None:
                second = token
        elif at_start and word in _VERBS:
            first = token
        else:
            at_start = word == ";" or word in _OPENERS


def _static_sql(text: str, first: Token, second: Token | None, semicolon: Token) -> str | None:
    """The statement's text; of an EXECUTE with one literal, what is executed."""
    if _word(text, first) != "execute":
        return text[first.start : semicolon.start]
    if second is None or text[second.end : semicolon.start].strip():
        return None
    quoted = text[second.start : second.end]
    if second.kind == "dollar" and (dollars := _DOLLARS.match(quoted)):
        return strip_comments(quoted[dollars.end() : -len(dollars[0])])
    if second.kind == "string" and quoted.startswith("'"):
        return strip_comments(quoted[1:-1].replace("''", "'"))
    return None


def _word(text: str, token: Token) -> str:
    return text[token.start : token.end].lower() if token.kind in {"word", "other"} else ""
