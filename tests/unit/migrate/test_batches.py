"""In which portions a file is sent."""

from __future__ import annotations

import pytest

from toft.migrate.batches import Batch, Mode, decide_sending, session_settings, strip_comments
from toft.migrate.split import split


def shape(text: str) -> tuple[Mode, list[str]]:
    """The mode and, for each batch, its statements' numbers, with `!` for one that goes alone."""
    sending = decide_sending(text, split(text))
    return sending.mode, [
        "".join(map(str, range(batch.first, batch.end))) + "!" * batch.is_alone for batch in sending.batches
    ]


@pytest.mark.parametrize(
    ("text", "mode", "batches"),
    [
        ("", Mode.ONE, [""]),
        ("a; b; c", Mode.ONE, ["012"]),
        ("a; create index concurrently i on t (x); b", Mode.SPLIT, ["0", "1!", "2"]),
        ("create unique index\nconcurrently if not exists i on t (x)", Mode.SPLIT, ["0!", ""]),
        ("CREATE INDEX CONCURRENTLY ON t (x); vacuum; a", Mode.SPLIT, ["0!", "1!", "2"]),
        ("a; vacuum(full) t; b; c; cluster; d", Mode.SPLIT, ["0", "1!", "23", "4!", "5"]),
        ("drop index concurrently i; reindex table concurrently t", Mode.SPLIT, ["0!", "1!", ""]),
        ("reindex (verbose) table concurrently t; alter system set a = 1", Mode.SPLIT, ["0!", "1!", ""]),
        ("-- why\n/* this */ vacuum", Mode.SPLIT, ["0!", ""]),
        ("create index i on concurrently (x); vacuums; reindex table t", Mode.ONE, ["012"]),
        ("refresh materialized view concurrently m", Mode.ONE, ["0"]),
        ("begin; a; commit", Mode.PER_STATEMENT, ["0!", "1!", "2!", ""]),
        (
            "a; -- x\nSTART  TRANSACTION isolation level serializable; b; end",
            Mode.PER_STATEMENT,
            ["0!", "1!", "2!", "3!", ""],
        ),
        ("a; abort", Mode.PER_STATEMENT, ["0!", "1!", ""]),
        ("prepare transaction 'x'", Mode.PER_STATEMENT, ["0!", ""]),
        ("rollback", Mode.PER_STATEMENT, ["0!", ""]),
        ("rollback and no chain", Mode.PER_STATEMENT, ["0!", ""]),
        ("rollback work", Mode.PER_STATEMENT, ["0!", ""]),
        ("rollback to s", Mode.ONE, ["0"]),
        ("rollback work to savepoint s; rollback transaction to s", Mode.ONE, ["01"]),
        ("beginning; prepare p as select 1; commitment; endless", Mode.ONE, ["0123"]),
        ("do $$ begin commit; end $$", Mode.ONE, ["0"]),
        ("-- pg-delta: transaction=false\na; b", Mode.PER_STATEMENT, ["0!", "1!", ""]),
        ("\ufeff-- pg-delta: transaction=false\r\na", Mode.PER_STATEMENT, ["0!", ""]),
        ("-- pg-delta: transaction=false ", Mode.ONE, ["0"]),
        ("\n-- pg-delta: transaction=false\na", Mode.ONE, ["0"]),
        ("-- pg-delta: transaction = false\na", Mode.ONE, ["0"]),
    ],
)
def test_batches(text: str, mode: Mode, batches: list[str]) -> None:
    """Marker first, then the file's own transactions, then the statements that must be alone."""
    assert shape(text) == (mode, batches)


def test_settings_of_the_session() -> None:
    """What the seeds meet: SET, RESET and set_config, but not what ends before, nor roles."""
    text = """
        set search_path = ''; SET SESSION statement_timeout TO 0; set local x = 1;
        set constraints all deferred; set role anon; set session role anon;
        set session authorization anon; set transaction read only; reset role; reset all;
        set session characteristics as transaction read only; reset session authorization;
        -- why
        SELECT pg_catalog.set_config('search_path', '', false); select set_config('a.b', 'c', false);
        select 1; settle; do $$ begin set x = 1; end $$
    """
    assert session_settings(split(text)) == [
        "set search_path = ''",
        "SET SESSION statement_timeout TO 0",
        "reset all",
        "SELECT pg_catalog.set_config('search_path', '', false)",
        "select set_config('a.b', 'c', false)",
    ]


def test_the_history_row_has_a_batch() -> None:
    """Even when there is no statement that could go with it."""
    assert decide_sending("vacuum", split("vacuum")).batches == (Batch(0, 1, is_alone=True), Batch(1, 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  select 1 ", "select 1 "),
        ("-- a\n--b\nselect 1", "select 1"),
        ("/* a */\ufeff\n-- b\n x", "x"),
        ("/* a /* b */ c */ x", "c */ x"),
        ("-- only", ""),
        ("/* open", "/* open"),
    ],
)
def test_comments_before_a_statement(text: str, expected: str) -> None:
    """They are taken away; a block comment ends at its first `*/`, as in the CLI."""
    assert strip_comments(text) == expected
