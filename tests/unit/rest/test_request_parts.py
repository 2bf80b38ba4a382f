"""Headers, paths, pages and bodies as values."""

from __future__ import annotations

import pytest

from tests.kit.rest_schema import ask
from toft.rest.errors import RestError
from toft.rest.options import RestOptions
from toft.rest.parse.body import parse_body
from toft.rest.parse.headers import parse_accept, parse_media, parse_prefer
from toft.rest.parse.skim import Head, Page
from toft.rest.request import Act, Payload


def test_preferences() -> None:
    """The first of a kind counts; what is unknown is remembered for the strict."""
    text = "return=minimal, return=representation,count=exact, foo=bar, max-affected=5, handling=strict"
    found = parse_prefer(text, allow_transaction=False, timezones=None)
    assert (found.representation, found.count, found.max_affected) == ("minimal", "exact", 5)
    assert (found.unknown, found.is_strict) == (("foo=bar",), True)
    zones = frozenset({"UTC"})
    assert parse_prefer("timezone=UTC", allow_transaction=False, timezones=zones).timezone == "UTC"
    refused = parse_prefer("timezone=Mars", allow_transaction=False, timezones=zones)
    assert (refused.timezone, refused.unknown) == (None, ("timezone=Mars",))
    assert parse_prefer("tx=rollback", allow_transaction=True, timezones=None).transaction == "rollback"
    ignored = parse_prefer("tx=rollback", allow_transaction=False, timezones=None)
    assert (ignored.transaction, ignored.unknown) == (None, ())


@pytest.mark.parametrize(
    ("header", "kinds"),
    [
        (None, ["any"]),
        ("text/csv, application/json", ["csv", "json"]),
        ("*/*;q=0.2, application/geo+json;q=0.9", ["geojson", "any"]),
        ("application/vnd.pgrst.object+json;nulls=stripped", ["object"]),
        ("application/vnd.pgrst.array+json;nulls=stripped", ["array-stripped"]),
        ("application/vnd.pgrst.array+json", ["json"]),
        ('application/vnd.pgrst.plan; for="text/csv"; options=analyze|buffers', ["plan"]),
        ("image/png", ["other"]),
    ],
)
def test_accept(header: str | None, kinds: list[str]) -> None:
    """Best first."""
    assert [media.kind for media in parse_accept(header)] == kinds


def test_media_types_as_they_are_sent() -> None:
    """Known ones in one spelling, unknown ones as they came."""
    assert parse_media("Application/Vnd.PgRsT.Object+json").text == "application/vnd.pgrst.object+json"
    assert parse_media("image/png; x=y").text == "image/png; x=y"


@pytest.mark.parametrize(
    ("query", "header", "page"),
    [
        ("", None, Page()),
        ("limit=5", None, Page(0, 5)),
        ("limit=5&offset=2", None, Page(2, 5)),
        ("offset=2", None, Page(2)),
        ("limit=x", None, Page()),
        ("limit=0", "5-9", Page(0, 0)),
        ("", "5-9", Page(5, 5)),
        ("", "5-", Page(5)),
        ("", "items", Page()),
        ("limit=3&offset=6", "5-9", Page(6, 3)),
        ("limit=10&offset=8", "5-9", Page(8, 2)),
    ],
)
def test_pages(query: str, header: str | None, page: Page) -> None:
    """Limit, offset and the Range header meet in one page."""
    assert ask("GET", f"/projects?{query}", head=Head(range=header)).page == page


@pytest.mark.parametrize(
    ("method", "query", "header", "code", "details"),
    [
        ("GET", "", "9-5", "PGRST103",
         "The lower boundary must be lower than or equal to the upper boundary in the Range header."),
        ("GET", "limit=-1", None, "PGRST103", "Limit should be greater than or equal to zero."),
        ("GET", "offset=20", "5-9", "PGRST103", "Limit should be greater than or equal to zero."),
        ("PUT", "limit=1", None, "PGRST114", None),
    ],
)  # fmt: skip
def test_pages_that_are_none(
    method: str, query: str, header: str | None, code: str, details: str | None
) -> None:
    """They are refused before the body is looked at."""
    with pytest.raises(RestError) as caught:
        ask(method, f"/projects?{query}", head=Head(range=header))
    assert (caught.value.code, caught.value.details) == (code, details)


def test_a_limit_is_cut_to_what_is_allowed() -> None:
    """The page that is told stays as asked."""
    asked = ask("GET", "/clients?limit=500&projects.limit=700", options=RestOptions(max_rows=100))
    assert asked.values == [b"100", b"100"]
    assert asked.page == Page(0, 500)


JSON = parse_media("application/json")


@pytest.mark.parametrize(
    ("body", "payload", "sent"),
    [
        (b'{"b": 1, "a": 2}', Payload(("a", "b"), is_object=True), None),
        (b' [{"a": 1}, {"a": 1e400}]', Payload(("a",)), None),
        (b"[]", Payload(), b"[]"),
        (b"[{}, {}]", Payload(), None),
        (b"{}", Payload(is_object=True), None),
        (b"5", Payload(), b"[]"),
        (b'"x"', Payload(), b"[]"),
    ],
)
def test_json_bodies(body: bytes, payload: Payload, sent: bytes | None) -> None:
    """The keys are found; the bytes go on as they are. What is no object counts as no rows."""
    assert parse_body(body, JSON, Act.INSERT, None, 0) == (payload, body if sent is None else sent, ())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "Empty or invalid json"),
        (b"{", "Empty or invalid json"),
        (b'{"a": 01}', "Empty or invalid json"),
        (b'{"a": "\xff"}', "Empty or invalid json"),
        (b'[{"a": 1}, {"b": 1}]', "All object keys must match"),
        (b'[{"a": 1}, 5]', "All object keys must match"),
        (b"[" * 50_000, "Empty or invalid json"),
    ],
)
def test_json_bodies_that_are_refused(body: bytes, message: str) -> None:
    """In the words that clients know."""
    with pytest.raises(RestError) as caught:
        parse_body(body, JSON, Act.INSERT, None, 0)
    assert (caught.value.code, caught.value.message) == ("PGRST102", message)


def test_other_bodies() -> None:
    """CSV and forms become JSON, or arguments; columns= leaves the body alone."""
    csv = parse_media("text/csv")
    payload, sent, _ = parse_body(b"a,b\n1,NULL\n2,x y", csv, Act.INSERT, None, 0)
    assert (payload, sent) == (Payload(("a", "b")), b'[{"a":"1","b":null},{"a":"2","b":"x y"}]')
    form = parse_media("application/x-www-form-urlencoded")
    payload, sent, _ = parse_body(b"a=1&b=x+y", form, Act.INSERT, None, 0)
    assert (payload, sent) == (Payload(("a", "b"), is_object=True), b'{"a":"1","b":"x y"}')
    payload, _, values = parse_body(b"a=1&b=2&b=3", form, Act.CALL, None, 4)
    assert payload is not None
    assert payload.arguments is not None
    assert [(name, operand.slot) for name, operand in payload.arguments] == [("a", 4), ("b", 5), ("b", 6)]
    assert list(values) == [b"1", b"2", b"3"]
    payload, sent, _ = parse_body(b"not json", JSON, Act.INSERT, ("b",), 0)
    assert (payload, sent) == (Payload(("b",)), b"not json")
    with pytest.raises(RestError, match="Content-Type not acceptable: image/png"):
        parse_body(b"", parse_media("image/png"), Act.INSERT, None, 0)
