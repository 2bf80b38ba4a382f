"""Connection URLs and quoting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toft.pg.quote import identifier, literal
from toft.pg.sqlstate import PostgresError
from toft.pg.transaction import transaction
from toft.pg.url import BadUrl, Target, make_url, parse_url
from toft.pg.wire import Statement

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(TEXTS, TEXTS, TEXTS)
def test_url_round_trip(user: str, password: str, database: str) -> None:
    """What a URL was made of is read from it again, whatever characters it holds."""
    target = Target(user, password, "127.0.0.1", 21001, database, {"sslmode": "disable"})
    assert parse_url(make_url(target)) == target


@pytest.mark.parametrize(
    "text", ["", "mysql://a@b/c", "postgres://a:secret@b:port/c", "postgres://a:s[ecret@b/c"]
)
def test_bad_url(text: str) -> None:
    """A text that is no connection URL is refused, and its password is not repeated."""
    with pytest.raises(BadUrl) as refused:
        parse_url(text)
    assert "ecret" not in str(refused.value)


def test_url_without_parts() -> None:
    """Parts that are left out have libpq's defaults."""
    assert parse_url("postgresql://") == Target("postgres", "", "localhost", 5432, "postgres")
    assert parse_url("postgres://u@[::1]:7/d").host == "::1"
    assert "p" not in repr(Target("u", "ppp", "h", 1, "d")).replace("Target", "")


def test_nul_is_refused() -> None:
    """A NUL can stand in no SQL text."""
    for quote in (identifier, literal):
        with pytest.raises(ValueError):
            quote("a\0b")


def test_error_words() -> None:
    """An error prints its message and SQLSTATE; its numbers are numbers."""
    error = PostgresError({"S": "FEHLER", "V": "ERROR", "C": "42601", "M": "syntax", "P": "12"}, 3)
    assert (str(error), error.position, error.severity, error.statement_index) == (
        "syntax (SQLSTATE 42601)",
        12,
        "ERROR",
        3,
    )
    assert error.internal_position is None


def test_transaction() -> None:
    """A pipeline is put between BEGIN with its mode and its end."""
    inner = Statement(b"select 1")
    sent = transaction([inner], isolation="serializable", read_only=True, rollback=True)
    assert [statement.sql for statement in sent] == [
        b"begin isolation level serializable read only",
        b"select 1",
        b"rollback",
    ]
