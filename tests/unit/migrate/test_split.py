"""Statements as the Supabase CLI cuts them. Expected pieces are what its history table held."""

from __future__ import annotations

import pytest

from toft.migrate.split import split

CASES = {
    "semicolons end statements": ("select 1; select 2;\n", ["select 1", "select 2"]),
    "the last needs none": ("select 1;\n\tselect 2 \n", ["select 1", "select 2"]),
    "nothing between": (";;  ; select 1;;;", ["select 1"]),
    "empty": ("", []),
    "only space": (" \n\t\r\n", []),
    "only a comment": ("-- a\n", ["-- a"]),
    "comments stay with what follows": (
        "-- a;b\nselect 1; /* c; */ select 2",
        ["-- a;b\nselect 1", "/* c; */ select 2"],
    ),
    "nested comments": ("/* a /* b; */ c; */ select 1; x", ["/* a /* b; */ c; */ select 1", "x"]),
    "a slash closes its comment": ("/*/ a; b", ["/*/ a", "b"]),
    "quotes": ("select 'a;b', \";\"; x", ["select 'a;b', \";\"", "x"]),
    "doubled quotes": ("select 'it''s;', \"a\"\";\"; x", ["select 'it''s;', \"a\"\";\"", "x"]),
    "a backslash does not escape a quote": ("select E'it\\'s'; x; y", ["select E'it\\'s'; x; y"]),
    "a backslash hides a semicolon": ("select 1 \\; x; y", ["select 1 \\; x", "y"]),
    "dollar quotes": (
        "do $$ a; b $$; do $x$ $$; $y$ ; $x$; z",
        ["do $$ a; b $$", "do $x$ $$; $y$ ; $x$", "z"],
    ),
    "parameters are no dollar quotes": ("select $1; select $2", ["select $1", "select $2"]),
    "an unfinished tag": ("select $a; b", ["select $a", "b"]),
    "an open string takes the rest": ("select 'a; b; c", ["select 'a; b; c"]),
    "an open dollar quote takes the rest": ("do $$ a; b; c;", ["do $$ a; b; c"]),
    "an open comment takes the rest": ("a; /* b; c", ["a", "/* b; c"]),
    "parentheses": (
        "create rule r as on insert to t do (a; b); c",
        ["create rule r as on insert to t do (a; b)", "c"],
    ),
    "the first parenthesis closes all": ("do ((a); b); c", ["do ((a)", "b)", "c"]),
    "a function of SQL": (
        "create function f() begin atomic select 1; select 2; end; x",
        ["create function f() begin atomic select 1; select 2; end", "x"],
    ),
    "over two lines": ("BEGIN\n  ATOMIC a; END; x", ["BEGIN\n  ATOMIC a; END", "x"]),
    "its body ends in any `end`": (
        "begin atomic select case when a then b end; select 1; end; x",
        ["begin atomic select case when a then b end", "select 1", "end", "x"],
    ),
    "also inside a word": (
        "begin atomic select weekend; b; end; x",
        ["begin atomic select weekend", "b", "end", "x"],
    ),
    "an atomic column is none": ("select atomic; select x.atomic", ["select atomic", "select x.atomic"]),
    "a longer word before atomic": ("select xbegin atomic; y", ["select xbegin atomic", "y"]),
    "a byte-order mark": ("\ufeffselect 1; x", ["select 1", "x"]),
    "windows line ends": ("select 1;\r\n-- a\r\nselect 2;\r\n", ["select 1", "-- a\r\nselect 2"]),
    "other space is trimmed too": ("\u00a0select 1\u3000; \u2028x", ["select 1", "x"]),
}


@pytest.mark.parametrize("case", CASES)
def test_pieces(case: str) -> None:
    """Each rule of the CLI's splitter, and each peculiarity."""
    text, expected = CASES[case]
    assert [piece.text for piece in split(text)] == expected


def test_pieces_know_where_they_stand() -> None:
    """In characters of the text, after the space before them."""
    text = "select 'ä';\n\n  -- x\n  select 2;"
    assert [(piece.start, text[piece.start :][:6]) for piece in split(text)] == [
        (0, "select"),
        (15, "-- x\n "),
    ]
