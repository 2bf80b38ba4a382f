"""A server's error is told with the place in the file as it lies there."""

from __future__ import annotations

import pytest

from tests.kit.fix_supabase import SupabaseCluster
from tests.kit.projects import apply_to, project_of
from toft.errors.project import MigrationFailed


async def place(cluster: SupabaseCluster, text: str | bytes) -> tuple[object, object, str]:
    """Line, column and the character run under the caret; the excerpt must agree with line and column."""
    with pytest.raises(MigrationFailed) as caught:
        await apply_to(cluster, project_of({"1_a.sql": text}))
    facts = caught.value.facts
    *_, shown, caret = str(facts["excerpt"]).split("\n")
    assert shown.split(" | ", 1)[0].strip() == str(facts["line"])
    return facts["line"], facts["column"], shown[caret.index("^") :]


CASES = {
    "a syntax error": ("create table a (x int);\n\n  creat table b ();\n", (3, 3, "creat table b ();")),
    "characters, not bytes": ("select 'äöü€😀', nope;", (1, 17, "nope;")),
    "after a comment of several lines": ("/* one\n two */ -- x\n\tselect nope", (3, 9, "nope")),
    "windows line ends": ("select 1;\r\nselect 2;\r\n  select nope;\r\n", (3, 10, "nope;")),
    "a byte-order mark": ("\ufeffselect nope", (1, 8, "nope")),
    "no position: the first word of the statement": (
        "select 1;\n-- a comment\n\n insert into nope_yet (a) values (1);",
        (4, 14, "nope_yet (a) values (1);"),
    ),
    "a constraint": (
        "create table a (x int check (x > 0));\n-- rows\n  insert into a values (0);",
        (3, 3, "insert into a values (0);"),
    ),
    "in a column's type": ("create table a (\n  id int,\n  v vektor(3)\n);", (3, 5, "vektor(3)")),
    "in a function's body": (
        "create function f() returns int language plpgsql as $$\nbegin\n  retrun 1;\nend $$;",
        (3, 3, "retrun 1;"),
    ),
    "in a sql function's body": (
        "create function f() returns int\nlanguage sql as $body$\n  select 'ü' ||\n  nope\n$body$;",
        (4, 3, "nope"),
    ),
    "an expression of a DO block": (
        "-- x\ndo $$\ndeclare a int;\nbegin\n  a := 1;\n  a := nope + 1;\nend $$;",
        (6, 8, "nope + 1;"),
    ),
    "a statement of a DO block, met twice": (
        "do $$ begin\n  create table if not exists a (x int);\n"
        "  if false then insert into a values ('x'); end if;\n"
        "  insert into a values ('x');\nend $$;",
        (4, 25, "'x');"),
    ),
    "raised by a DO block": (
        "do $$\nbegin\n  perform 1;\n  raise exception 'no';\nend $$;",
        (4, 3, "raise exception 'no';"),
    ),
    "a DO block that does not compile": ("do $$\nbegin\n  perform 1\nend $$;", (4, 5, "$$;")),
    "raised by a function that a DO block calls": (
        "create function f() returns void language plpgsql as $$ begin\n\n\n raise 'no'; end $$;\n"
        "do $$\nbegin\n  perform f();\nend $$;",
        (7, 3, "perform f();"),
    ),
    "raised by a function": (
        "create function f() returns void language plpgsql as $$ begin raise 'no'; end $$;\n\n  select f();",
        (3, 3, "select f();"),
    ),
    "a long line": (
        "select " + "1, " * 500 + "nope, " + "2, " * 500 + "3",
        (1, 1508, "nope, " + "2, " * 16 + "2,"),
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_place_of_an_error(supabase: SupabaseCluster, case: str) -> None:
    """Line and column of what the server points at, else of the statement's first word."""
    text, expected = CASES[case]
    assert await place(supabase, text) == expected


async def test_a_large_file(supabase: SupabaseCluster) -> None:
    """50 MB of rows apply, and an error in their middle is found."""
    row = "('" + "x" * 985 + "it''s')"
    many = ",\n".join([row] * 10_000)
    text = f"create table a (t text);\ninsert into a values\n{many};\n"
    await apply_to(
        supabase,
        project_of({"1_a.sql": text * 1, "2_b.sql": f"insert into a values\n{(many + ',\n') * 4}{row};"}),
    )
    session = await supabase.connect()
    assert await session.query("select count(*) from a") == [["50001"]]
    with pytest.raises(MigrationFailed) as caught:
        await apply_to(
            supabase, project_of({"1_a.sql": "", "2_b.sql": "", "3_c.sql": f"{text[25:-2]},\n(nope);\n"})
        )
    assert (caught.value.facts["line"], caught.value.facts["column"]) == (10_002, 2)


async def test_a_server_that_goes_away(supabase: SupabaseCluster) -> None:
    """A file that ends its own connection is told as such, with its line."""
    with pytest.raises(MigrationFailed) as caught:
        await apply_to(
            supabase, project_of({"1_a.sql": "select 1;\nselect pg_terminate_backend(pg_backend_pid());"})
        )
    assert caught.value.facts["sqlstate"] in {"57P01", "08006"}
    assert caught.value.facts["file"] == "supabase/migrations/1_a.sql"
