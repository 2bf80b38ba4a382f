"""Laws of cutting a file into statements."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from toft.migrate.batches import Mode, decide_sending
from toft.migrate.lex import tokens
from toft.migrate.split import split

FRAGMENTS = [
    ";",
    "'",
    "''",
    '"',
    "$$",
    "$a$",
    "$1",
    "$",
    "--",
    "-",
    "/*",
    "*/",
    "/",
    "*",
    "\\",
    "(",
    ")",
    "\n",
    " ",
    "BEGIN ATOMIC",
    "begin\n atomic ",
    "atomic",
    "end",
    "weekend",
    "_begin atomic",
    "E'",
    "é",
    "\ufeff",
    "\r\n",
    "x",
    "a",
    "select 1",
    "commit",
    "é$é$",
]
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)


def cut(text: str) -> list[str]:  # noqa: C901 - all states in one place, to be read beside the module
    """The CLI's rules once more, one character at a time and without any shortcut."""
    pieces: list[str] = []
    start = 0
    state = "ready"
    closing: list[str] = []  # of parentheses and bodies, innermost last
    for at, char in enumerate(text):
        so_far = text[start : at + 1]
        if state[0] == "q" and state.endswith("?"):  # after a closing quote: doubled?
            state = state[:-1] if char == state[1] else "ready"
            if state != "ready":
                continue
        elif state[0] == "q":
            state += "?" if char == state[1] else ""
            continue
        elif state == "-":
            state = "line" if char == "-" else "ready"
            if state == "line":
                continue
        elif state == "line":
            state = "ready" if char == "\n" else "line"
            continue
        elif state[0] == "/":
            depth = int(state[1:])
            if so_far.endswith("/*"):
                state = f"/{depth + 1}"
                continue
            if depth:
                depth -= so_far.endswith("*/")
                state = f"/{depth}" if depth else "ready"
                continue
            state = "ready"
        elif state[0] == "t":
            if char == "$":
                state = "d" + text[int(state[1:]) : at + 1]
                continue
            if char.isalnum() or char == "_":
                continue
            state = "ready"
        elif state[0] == "d":
            state = "ready" if so_far.endswith(state[1:]) else state
            continue
        elif state == "hidden":
            state = "ready"
            while closing and closing[-1] == char == ")":
                closing.pop()
            continue
        if char in "'\"":
            state = "q" + char
        elif char == "-":
            state = "-"
        elif char == "/":
            state = "/0"
        elif char == "$":
            state = f"t{at}"
        elif char == "\\":
            state = "hidden"
        elif char == "(":
            closing.append(")")
        elif char == ";" and not closing:
            pieces.append(so_far)
            start = at + 1
        elif char in "cC" and begins_body(so_far):
            closing.append("end")
        elif closing and so_far.lower().endswith(closing[-1]):
            last = closing[-1]
            while closing and closing[-1] == last:
                closing.pop()
    pieces.append(text[start:])
    return [cleaned for piece in pieces if (cleaned := piece.rstrip(";").strip().strip("\ufeff \r\n"))]


def begins_body(so_far: str) -> bool:
    before = so_far[:-6]
    begin = before.rstrip()
    if so_far[-6:].lower() != "atomic" or begin[-5:].lower() != "begin" or begin == before:
        return False
    return not (begin[-6:-5].isalnum() or begin[-6:-5] in ("_", "$")) if len(begin) > 5 else True


@given(texts)
@example("a((b);c)d;e")
@example("create function f() begin atomic select (1);  end; x")
@example("\\end;(\\);)")
@example("begin atomic \\end; x")
def test_it_cuts_where_the_plain_reading_cuts(text: str) -> None:
    """The quick scanner and the plain one agree."""
    assert [piece.text for piece in split(text)] == cut(text)


@given(texts)
def test_pieces_are_the_file(text: str) -> None:
    """Pieces stand in the file where they say, in order; nothing but semicolons and space lies between
    them.
    """
    at = 0
    for piece in split(text):
        assert text[piece.start : piece.start + len(piece.text)] == piece.text
        assert not text[at : piece.start].strip(" ;\r\n\ufeff")
        at = piece.start + len(piece.text)
    assert not text[at:].strip(" ;\r\n\ufeff")


@given(texts)
def test_every_statement_is_sent_once(text: str) -> None:
    """Batches follow each other without a gap, and the last one can carry the history row."""
    pieces = split(text)
    sending = decide_sending(text, pieces)
    assert [batch.first for batch in sending.batches] == [0, *(batch.end for batch in sending.batches[:-1])]
    assert sending.batches[-1].end == len(pieces)
    assert not sending.batches[-1].is_alone
    assert (sending.mode is Mode.ONE) == (len(sending.batches) == 1)


@given(texts)
def test_tokens_lie_in_the_text(text: str) -> None:
    """The server-like reading comes to an end too, with tokens in order that do not overlap."""
    at = 0
    for token in tokens(text):
        assert at <= token.start < token.end <= len(text)
        at = token.end
