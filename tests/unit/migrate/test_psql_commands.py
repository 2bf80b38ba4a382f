"""What only psql understands is found before anything runs."""

from __future__ import annotations

import pytest

from toft.errors.project import FileUnreadable
from toft.migrate.cut import cut
from toft.migrate.project import read_file
from toft.migrate.psql_commands import Understood, understand


@pytest.mark.parametrize(
    ("text", "line", "cause"),
    [
        ("select 1;\r\n  \\i other.sql\r\n", 2, "`\\i`"),
        ("-- x\n\\! rm -rf /\n", 2, "`\\!`"),
        ("select 'a' \\gexec\n", 1, "`\\gexec`"),
        ("select 1;\nselect 2 \\g\n", 2, "`\\g`"),
        ("\\copy t from 'x'", 1, "`\\copy`"),
        ("select E'\\'';\n\\q", 2, "`\\q`"),
        ("select 1;\n\\connect other\n", 2, "`\\connect`"),
        ("\\c postgres someone", 1, "`\\c`"),
        ("\\set x 1\nselect :x;", 1, "`\\set`"),
        ("\\encoding latin1", 1, "`\\encoding`"),
        ("select 1\n\\echo x\n;", 2, "`\\echo`"),
        ("copy t from stdin; select 1;\n1\n\\.\n", 1, "follows"),
        ("copy t from stdin", 1, "`COPY ... FROM stdin`"),
    ],
)
def test_found(text: str, line: int, cause: str) -> None:
    """The file is refused with the line, the reason, and what to do."""
    with pytest.raises(FileUnreadable) as caught:
        read_file("a.sql", text.encode())
    assert caught.value.facts["line"] == line
    assert cause in str(caught.value.facts["cause"])
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "select '\n\\restrict';",
        "select E'\\\\', E'\\'\n\\i x';",
        "do $$\n\\i x\n$$;",
        "do $a$ '\n\\i x $a$;",
        "-- \\i x\n/*\n\\i /* \\i */ \n\\i */ select 1;",
        'select "\n\\i";',
        "copy t to stdout; copy (select 1) to stdout",
        "copy t from '/tmp/stdin'",
        "-- copy t from stdin\nselect 'copy t from stdin'; select copy from stdin",
        "insert into copy select * from stdin",
        "select 1 \\ 2",
    ],
)
def test_not_found(text: str) -> None:
    """Inside strings, comments and dollar quotes it is text like any other."""
    assert understand(text) == Understood(text)


@pytest.mark.parametrize(
    ("text", "sql", "commands"),
    [
        ("\\restrict abc\nselect 1;\n\\unrestrict abc\n", "select 1;", ["\\restrict", "\\unrestrict"]),
        ("\\connect postgres\nselect 1", "select 1", ["\\connect"]),
        ("\\connect -reuse-previous=on \"dbname='postgres'\"\nselect 1", "select 1", ["\\connect"]),
        (
            "\\set ON_ERROR_STOP on\n\\timing\n\\echo 'it''s'\nselect 1",
            "select 1",
            ["\\set", "\\timing", "\\echo"],
        ),
        ("\\encoding UTF8\r\nselect 1;", "select 1;", ["\\encoding"]),
    ],
)
def test_passed_over(text: str, sql: str, commands: list[str]) -> None:
    """What changes only psql's own ways becomes spaces, and every character after it keeps its place."""
    found = understand(text)
    assert isinstance(found, Understood)
    assert found.sql.strip() == sql
    assert (found.sql.index(sql), len(found.sql)) == (text.index(sql), len(text))
    assert [command for _, command in found.passed_over] == commands
    assert len(read_file("a.sql", text.encode()).notices) == 1


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("COPY public.t (a, b) FROM stdin;\n1\t\\N\n\\.\nselect 1;", ["1\t\\N\n"]),
        ("select 1;\n-- rows\ncopy t from\nSTDIN with (format csv);\n'1;\n\\.\n", ["'1;\n"]),
        ("copy a from stdin;\n\\.\ncopy b from stdin;\nit's; $$ /*\n\\.\n", ["", "it's; $$ /*\n"]),
        ("copy a from stdin;\r\n1\r\n\\.\r\n", ["1\r\n"]),
        ("copy a from stdin;\n1\n2", ["1\n2"]),
    ],
)
def test_rows_of_copy(text: str, rows: list[str]) -> None:
    """What follows COPY FROM stdin is its rows, up to the line that ends them, whatever is in them."""
    pieces = cut(text)
    assert [piece.rows for piece in pieces if piece.rows is not None] == rows
    assert all("\\." not in piece.text for piece in pieces)
    assert all(text.startswith(piece.text, piece.start) for piece in pieces)
    [notice] = read_file("a.sql", text.encode()).notices
    assert "the Supabase CLI refuses the file" in notice.text
