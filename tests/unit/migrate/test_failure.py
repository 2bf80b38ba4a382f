"""Places and advice for errors of the server. Positions that servers really report: tests/service/migrate."""

from __future__ import annotations

import pytest

from toft.errors.project import MigrationFailed
from toft.migrate.advice import advise
from toft.migrate.failure import Outcome, migration_failed, point_at
from toft.migrate.place import line_and_column
from toft.migrate.project import SqlFile
from toft.migrate.split import split
from toft.pg.sqlstate import PostgresError


def fail(text: str, index: int, **fields: str) -> MigrationFailed:
    pieces = split(text)
    sent = pieces[index].text if index < len(pieces) else ""
    error = PostgresError({"C": "42601", "M": "syntax error", **fields})
    return migration_failed(
        SqlFile("supabase/migrations/1_a.sql", text, ""), pieces, index, sent, error, Outcome()
    )


def test_a_failure_is_told_in_one_line_and_in_full() -> None:
    """File, line, words of the server, SQLSTATE and the statement's number; the rest are facts beside it."""
    error = fail(
        "select 1;\n\nselect 2,\n  nope;\n",
        1,
        C="42703",
        M='column "nope" does not exist',
        P="13",
        D="why",
        H="Hm.",
    )
    assert str(error) == (
        'supabase/migrations/1_a.sql:4: column "nope" does not exist (SQLSTATE 42703, statement 1)'
    )
    assert error.hint == "hm"
    assert (error.facts["line"], error.facts["column"], error.facts["detail"]) == (4, 3, "why")
    assert error.facts["excerpt"] == "2 | \n3 | select 2,\n4 |   nope;\n  |   ^"


def test_after_the_last_statement() -> None:
    """The history row and the commit have no place in the file."""
    error = fail("select 1;", 1, C="23505", M="duplicate key")
    assert (error.facts["line"], error.facts["excerpt"], error.facts["statement"]) == (1, "", 1)


@pytest.mark.parametrize(
    ("offset", "place"),
    [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (4, (2, 2)), (5, (2, 3)), (99, (2, 3)), (-1, (1, 1))],
)
def test_lines_and_columns(offset: int, place: tuple[int, int]) -> None:
    """From 1, in characters; beyond the end is the end."""
    assert line_and_column("ä€\n😀b", offset) == place


def test_excerpts() -> None:
    """Two lines before, numbered alike; tabs are one space; a long line is cut around the column."""
    text = "\n".join([*map(str, range(1, 9)), "\tnine", "ten"])
    assert point_at(text, 10, 2) == " 8 | 8\n 9 |  nine\n10 | ten\n   |  ^"
    assert point_at("x", 1, 1) == "1 | x\n  | ^"
    long = "a" * 300 + "HERE" + "b" * 300
    shown, caret = point_at(long, 1, 301).split("\n")
    assert shown[caret.index("^") :].startswith("HERE")
    assert len(shown) <= 120


@pytest.mark.parametrize(
    ("fields", "statement", "words"),
    [
        ({"C": "42704", "M": 'type "citext" does not exist'}, "x", "`extensions.citext`"),
        ({"C": "42704", "M": 'type "vector" does not exist'}, "x", "create extension if not exists vector"),
        ({"C": "42704", "M": 'type "a.b" does not exist'}, "x", "mend the statement"),
        ({"C": "42883", "M": "function uuid_generate_v4() does not exist"}, "x", "gen_random_uuid()"),
        ({"C": "42883", "M": "function crypt(text, text) does not exist"}, "x", "`extensions.crypt(...)`"),
        (
            {"C": "42883", "M": "function mine() does not exist", "H": "No function matches."},
            "x",
            "no function matches",
        ),
        ({"C": "0A000", "M": 'extension "vector" is not available'}, "x", "major_version = 18"),
        ({"C": "0A000", "M": 'extension "postgis" is not available', "H": "x"}, "x", "`toft doctor`"),
        ({"C": "42501", "M": 'permission denied to create extension "file_fdw"'}, "x", "hosted platform"),
        ({"C": "42501", "M": "permission denied for schema auth"}, "create table auth.x ()", "services own"),
        (
            {"C": "42501", "M": "must be owner of table users"},
            "alter table auth.users add x int",
            "services own",
        ),
        (
            {"C": "42501", "M": "must be owner of table mine"},
            "alter table mine add x int",
            "mend the statement",
        ),
        ({"C": "42501", "M": "permission denied to create role"}, "do $$$$", "execute format"),
        (
            {"C": "42501", "M": 'permission denied to create event trigger "x"', "H": "Must be superuser."},
            "x",
            "event trigger",
        ),
        (
            {"C": "42501", "M": 'permission denied to set parameter "log_statement"'},
            "x",
            "belongs to the server",
        ),
        ({"C": "42501", "M": "permission denied for schema supabase_migrations"}, "", "`reset role`"),
        ({"C": "23505", "M": "duplicate key", "n": "schema_migrations_pkey"}, "", "same version"),
        ({"C": "23505", "M": "duplicate key", "n": "other"}, "insert", "mend the statement"),
        ({"C": "23503", "M": "violates"}, "", "deferred"),
        ({"C": "55P04", "M": "unsafe use"}, "x", "next file"),
        ({"C": "25P01", "M": "LOCK TABLE can only be used in transaction blocks"}, "x", "`begin;`"),
        ({"C": "25001", "M": "cannot run inside"}, "x", "file of its own"),
        ({"C": "42601", "M": "cannot insert multiple commands into a prepared statement"}, "x", "backslash"),
        ({"C": "42601", "M": 'syntax error at or near ":"'}, "x", "variable of psql"),
        ({"C": "42P01", "M": 'relation "storage.nope" does not exist'}, "x", "`toft psql`"),
        ({"C": "42P01", "M": 'relation "a" does not exist'}, "x", "supabase db pull"),
        ({"C": "57014", "M": "canceling statement due to statement timeout"}, "x", "statement_timeout"),
        ({"C": "57014", "M": "canceling statement due to user request"}, "x", "mend the statement"),
        ({"C": "55000", "M": "logical decoding requires wal_level >= logical"}, "x", "logical decoding"),
        ({"C": "XX000", "M": "odd"}, "x", "mend the statement"),
    ],
)
def test_advice(fields: dict[str, str], statement: str, words: str) -> None:
    """What a Supabase database or a migration has of its own is explained; else the server's hint is
    passed on.
    """
    sentence = advise(PostgresError(fields), statement)
    assert words in sentence
    assert not sentence.endswith(".")


def test_advice_from_what_we_know() -> None:
    """The reason of a refusal, and an emptied search path, go before the rest."""
    error = PostgresError({"C": "42501", "M": "permission denied to create role"})
    assert advise(error, "create role x superuser", refusal="SUPERUSER is not given").startswith("SUPERUSER")
    lost = PostgresError({"C": "42P01", "M": 'relation "t" does not exist'})
    assert "search_path" in advise(lost, "select * from t", search_path="")
    assert "search_path" not in advise(lost, "select * from t", search_path="public")
