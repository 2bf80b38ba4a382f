"""Rows and errors as responses."""

from __future__ import annotations

import pytest

from tests.kit.rest_schema import plan
from toft.http.message import Response
from toft.pg.sqlstate import PostgresError
from toft.rest.errors import RestError, bad_token
from toft.rest.parse.skim import Head
from toft.rest.pg_faults import from_postgres
from toft.rest.plan.nodes import Plan
from toft.rest.respond import Answer, respond, respond_error
from toft.tokens.caller import TokenError, TokenFault


def answer(
    total: int | None = None,
    page: int = 0,
    body: bytes = b"[]",
    headers: bytes | None = None,
    status: bytes | None = None,
    location: bytes | None = None,
    inserted: int | None = None,
) -> Answer:
    """A row as the database gives it."""
    return Answer(total, page, body, headers, status, location, inserted)


def say(plan: Plan, row: Answer) -> Response:
    """The response to it, on the first page."""
    return respond(plan, row, 0, "")


def headers_of(response: Response) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in response.headers}


@pytest.mark.parametrize(
    ("total", "page", "offset", "status", "shown"),
    [
        (None, 3, 0, 200, "0-2/*"),
        (None, 0, 0, 200, "*/*"),
        (3, 3, 0, 200, "0-2/3"),
        (9, 3, 3, 206, "3-5/9"),
        (3, 0, 3, 206, "*/3"),
        (3, 0, 4, 416, "*/3"),
        (0, 0, 0, 200, "*/0"),
    ],
)
def test_pages(total: int | None, page: int, offset: int, status: int, shown: str) -> None:
    """Status and Content-Range follow from offset, page and total."""
    response = respond(plan("GET", "/clients"), answer(total, page), offset, "")
    assert (response.status, headers_of(response)["content-range"]) == (status, shown)


def test_writes() -> None:
    """Status and headers of each kind of write."""
    minimal = say(plan("POST", "/clients", b'{"id": 1}'), answer(page=1, body=b""))
    assert (minimal.status, headers_of(minimal)) == (201, {"content-length": "0", "content-range": "*/*"})
    merge = Head(prefer="resolution=merge-duplicates,return=representation")
    merged = say(plan("POST", "/clients", b'{"id": 1}', merge), answer(page=1, inserted=0))
    assert merged.status == 200
    located = Head(prefer="return=headers-only")
    where = say(
        plan("POST", "/clients", b'{"id": 1}', located),
        answer(page=1, location=b'[["id", "a b"], ["x", null]]'),
    )
    assert headers_of(where)["location"] == "/clients?id=eq.a%20b&x=is.null"
    updated = say(plan("PATCH", "/clients?id=eq.1", b'{"id": 1}'), answer(page=2))
    assert (updated.status, headers_of(updated)) == (204, {"content-range": "0-1/*"})
    deleted = say(plan("DELETE", "/clients?id=eq.1"), answer(page=2))
    assert (deleted.status, headers_of(deleted)) == (204, {"content-range": "*/*"})


def test_the_database_may_say_how_to_answer() -> None:
    """Its headers replace ours of the same name and may repeat; its status replaces ours."""
    said = answer(
        page=0, headers=b'[{"Content-Type": "x/y"}, {"Set-Cookie": "a"}, {"Set-Cookie": "b"}]', status=b"203"
    )
    response = say(plan("GET", "/clients"), said)
    assert response.status == 203
    assert [value for name, value in response.headers if name == b"set-cookie"] == [b"a", b"b"]
    assert [value for name, value in response.headers if name == b"content-type"] == [b"x/y"]


@pytest.mark.parametrize("headers", [b"{}", b"[1]", b'[{"a": 1}]', b'[{"a": "1", "b": "2"}]', b"x"])
def test_headers_that_are_none(headers: bytes) -> None:
    """500 PGRST111."""
    with pytest.raises(RestError, match="PGRST111"):
        say(plan("GET", "/clients"), answer(headers=headers))
    with pytest.raises(RestError, match="PGRST112"):
        say(plan("GET", "/clients"), answer(status=b"abc"))


def test_void_and_head() -> None:
    """Nothing to say: 204; HEAD has the headers and no length."""
    assert say(plan("POST", "/rpc/nothing"), answer(page=1, body=b"x")).status == 204
    head = respond(plan("HEAD", "/clients"), answer(page=2), 0, "id=eq.1")
    assert head.body == b""
    assert headers_of(head) == {
        "content-range": "0-1/*",
        "content-location": "/clients?id=eq.1",
        "content-type": "application/json; charset=utf-8",
        "content-profile": "public",
    }


def test_an_error_has_four_keys() -> None:
    """All are there, null or not, and the code is told to proxies."""
    response = respond_error(RestError(400, "X1", "m"))
    assert response.body == b'{"code":"X1","details":null,"hint":null,"message":"m"}'
    assert headers_of(response)["proxy-status"] == "PostgREST; error=X1"


STATES = [
    ("08006", "", 503), ("57P01", "", 503), ("53300", "", 503), ("53400", "", 500), ("25006", "", 405),
    ("25001", "", 500), ("23505", "", 409), ("23503", "", 409), ("23502", "", 400), ("42P01", "", 404),
    ("42P17", "", 500), ("P0001", "", 400), ("P0002", "", 500), ("42883", "function x() does not exist", 404),
    ("42883", "function xmlagg(x) does not exist", 406), ("21000", "UPDATE requires a WHERE clause", 400),
    ("21000", "more than one row", 500), ("22023", 'role "x" does not exist', 401), ("22023", "no", 400),
    ("PT402", "Pay", 402), ("PTabc", "", 500), ("28000", "", 403), ("XX000", "", 500), ("22P02", "", 400),
    ("57014", "", 500), ("40001", "", 500), ("0LP01", "", 403),
]  # fmt: skip


@pytest.mark.parametrize(("state", "message", "status"), STATES)
def test_status_by_sqlstate(state: str, message: str, status: int) -> None:
    """The table of the contract."""
    error = from_postgres(PostgresError({"C": state, "M": message}), is_anonymous=False)
    assert (error.status, error.code, error.message) == (status, state, message)


def test_a_refusal_of_rights() -> None:
    """The anonymous may log in and try again; others may not."""
    refused = PostgresError({"C": "42501", "M": "permission denied"})
    assert from_postgres(refused, is_anonymous=True).status == 401
    assert from_postgres(refused, is_anonymous=True).headers == [(b"www-authenticate", b"Bearer")]
    assert from_postgres(refused, is_anonymous=False).status == 403


def test_errors_that_a_function_words_itself() -> None:
    """RAISE SQLSTATE 'PGRST' says body, status and headers; malformed ones are told how."""
    raised = PostgresError({
        "C": "PGRST",
        "M": '{"code": "1", "message": "m", "hint": "h"}',
        "D": '{"status": 332, "headers": {"X-A": "b"}, "status_text": "Odd"}',
    })  # fmt: skip
    error = from_postgres(raised, is_anonymous=False)
    assert (error.status, error.code, error.message, error.hint) == (332, "1", "m", "h")
    assert (error.headers, error.status_text) == ([(b"x-a", b"b")], "Odd")
    for fields, details in (
        ({"M": "x"}, "Invalid JSON value for MESSAGE: 'x'"),
        ({"M": '{"code": "1", "message": "m"}'}, "DETAIL is missing in the RAISE statement"),
        ({"M": '{"code": "1", "message": "m"}', "D": "{}"}, "Invalid JSON value for DETAIL: '{}'"),
    ):
        error = from_postgres(PostgresError({"C": "PGRST", **fields}), is_anonymous=False)
        assert (error.code, error.details) == ("PGRST121", details)


def test_the_alarm_of_a_statement() -> None:
    """A wrong number of rows is told by the statement itself."""
    for code in ("PGRST115", "PGRST116", "PGRST124"):
        message = f'invalid input syntax for type integer: "toft:{code}:7"'
        error = from_postgres(PostgresError({"C": "22P02", "M": message}), is_anonymous=False)
        assert error.code == code
        assert code == "PGRST115" or "7 rows" in error.details


@pytest.mark.parametrize("fault", TokenFault)
def test_every_fault_of_a_token_has_its_words(fault: TokenFault) -> None:
    """401, with a challenge that repeats the message."""
    error = bad_token(TokenError(fault, "3"))
    assert error.status == 401
    assert error.code in {"PGRST301", "PGRST303"}
    assert error.headers[0][1].startswith(b'Bearer error="invalid_token", error_description="')
