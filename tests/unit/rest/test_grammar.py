"""What the query string's grammar accepts, and how it words what it does not."""

from __future__ import annotations

import pytest

from tests.kit.rest_schema import ask
from toft.rest.errors import RestError
from toft.rest.parse.skim import meaning
from toft.rest.request import Compare, Field, Filter, InList, IsTest, IsValue, Logic, Operand, Query

FAULTS = [
    ("id=noop.0", '"failed to parse filter (noop.0)" (line 1, column 1)',
     'unexpected "o" expecting "not" or operator (eq, gt, ...)'),
    ("id=0", '"failed to parse filter (0)" (line 1, column 1)',
     'unexpected "0" expecting "not" or operator (eq, gt, ...)'),
    ("id=is.nope", '"failed to parse filter (is.nope)" (line 1, column 6)',
     'unexpected "p" expecting isVal: (null, not_null, true, false, unknown)'),
    ("or=()", '"failed to parse logic tree (())" (line 1, column 4)',
     'unexpected ")" expecting field name (* or [a..z0..9_$]), negation operator (not)'
     " or logic operator (and, or)"),
    ("order=id.asc.nullslasttt", '"failed to parse order (id.asc.nullslasttt)" (line 1, column 17)',
     "unexpected 't' expecting \",\" or end of input"),
    ("columns=", '"failed to parse columns parameter ()" (line 1, column 1)',
     "unexpected end of input expecting field name (* or [a..z0..9_$])"),
    ("in.x=eq.1&a..b=eq.1", '"failed to parse tree path (a..b)" (line 1, column 3)',
     'unexpected "." expecting field name (* or [a..z0..9_$])'),
]  # fmt: skip


def read(query: str) -> Query:
    """The meaning of a query string."""
    return meaning(ask("GET", f"/projects?{query}"))[0].query


@pytest.mark.parametrize(("query", "message", "details"), FAULTS)
def test_faults_are_worded_as_upstream_does(query: str, message: str, details: str) -> None:
    """Clients match on these texts."""
    with pytest.raises(RestError) as caught:
        read(query)
    assert (caught.value.code, caught.value.message, caught.value.details) == ("PGRST100", message, details)


def test_the_first_fault_of_several() -> None:
    """The order is judged before the select, and both before filters."""
    with pytest.raises(RestError, match="failed to parse order"):
        read("id=x&select=id(&order=,")
    with pytest.raises(RestError, match="failed to parse select"):
        read("id=x&select=id(")


def test_values_are_not_part_of_the_meaning() -> None:
    """An operand is a place; what is written as a value is nowhere in the tree."""
    query = read("id=not.eq.5&or=(name.like.x*,id.in.(1,2),and(id.is.null,id.not.gt.7))")
    assert query.filters == (((), Filter(Field("id"), Compare("eq", Operand("", 0)), True)),)
    [(_, tree)] = query.logic
    assert isinstance(tree, Logic)
    like, listed, inner = tree.terms
    assert like == Filter(Field("name"), Compare("like", Operand("", 1)))
    assert listed == Filter(Field("id"), InList(Operand("", 2)))
    assert isinstance(inner, Logic)
    assert inner.terms[0] == Filter(Field("id"), IsTest(IsValue.NULL))


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("id=eq.5", [b"5"]),
        ('name=eq."x"', [b'"x"']),
        ("name=like.a*b", [b"a%b"]),
        ("name=ilike(any).{a*,b}", [b"{a%,b}"]),
        ("name=match.a*", [b"a*"]),
        ('name=in.(a,"b,c",d)', [b'{"a","b,c","d"}']),
        ("name=in.()", [b"{}"]),
        ('name=in.("a\\"b")', [b'{"a\\"b"}']),
        ("data=cs.{1,2}", [b"{1,2}"]),
        ("name=fts(english).a b", [b"a b"]),
        ("name=eq.a%00b", [b"a"]),
        ("name=eq.%C3%A9+x", "é x".encode()),
        ("and=(data.cs.{1,2},name.eq.b)", [b"{1,2}", b"b"]),
        ("limit=3&offset=4", [b"3", b"4"]),
    ],
)
def test_values(query: str, values: list[bytes] | bytes) -> None:
    """Each operator's value as it is sent to Postgres."""
    wanted = [values] if isinstance(values, bytes) else values
    asked = ask("GET", f"/projects?{query}")
    request, _ = meaning(asked)
    texts = [
        operand.text.encode()
        for _, found in request.query.filters
        if not isinstance(found.operation, IsTest)
        for operand in [found.operation.operand]
        if operand.slot is None
    ]
    assert [*asked.values, *texts] == wanted


def test_content_location_sorts_and_joins() -> None:
    """Names in order, repeated ones joined by a comma, each byte encoded on its own."""
    asked = ask("GET", "/projects?select=id&id=gt.1&id=lt.9&name=eq.%C3%A9")
    assert asked.shown_back == "id=gt.1,lt.9&name=eq.%C3%83%C2%A9&select=id"
