"""What only psql understands is found before anything runs."""

from __future__ import annotations

import pytest

from toft.errors.project import FileUnreadable
from toft.migrate.project import read_file
from toft.migrate.psql_commands import find_psql


@pytest.mark.parametrize(
    ("text", "line", "cause"),
    [
        ("\\restrict abc\nselect 1;", 1, "`\\restrict`"),
        ("select 1;\n\\connect postgres\n", 2, "`\\connect`"),
        ("select 1;\r\n  \\i other.sql\r\n", 2, "`\\i`"),
        ("-- x\n\\! rm -rf /\n", 2, "`\\!`"),
        ("select 'a' \\gexec\n", 1, "`\\gexec`"),
        ("select 1;\nselect 2 \\g\n", 2, "`\\g`"),
        ("\\copy t from 'x'", 1, "`\\copy`"),
        ("COPY public.t (a, b) FROM stdin;\n1\t\\N\n\\.\n", 1, "`COPY ... FROM stdin`"),
        ("select 1;\n\n-- rows\ncopy t from\nSTDIN with (format csv);\n1\n\\.\n", 4, "`COPY ... FROM stdin`"),
        ("select E'\\'';\n\\q", 2, "`\\q`"),
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
    assert find_psql(text) is None
