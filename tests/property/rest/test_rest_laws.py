"""Laws of the pure rooms of the Data API, over requests that nobody thought of."""

from __future__ import annotations

import re

import postgast
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.kit.rest_requests import Wild, encoded, requests, texts, trees
from tests.kit.rest_schema import ALLOWANCE, sample
from toft.rest.errors import RestError
from toft.rest.options import RestOptions
from toft.rest.parse import filters
from toft.rest.parse.grammar import GrammarError, run
from toft.rest.parse.skim import Head, finish, meaning, skim
from toft.rest.plan.plan import make_plan
from toft.rest.render.fragment import Rendered
from toft.rest.render.statement import render

SCHEMA = sample()
OPTIONS = RestOptions(max_rows=None)


def outcome(method: str, path: str, query: str, body: bytes, head: Head) -> tuple[Rendered | RestError, int]:
    """The statement with the number of values there are, or the error."""
    try:
        asked = skim(method, path, query, head, OPTIONS, None)
        finish(asked, head, body, None)
        meant, _ = meaning(asked)
        if asked.target.act.value.startswith(("describe", "inspect")):
            return Rendered(b""), 0
        return render(make_plan(SCHEMA, meant, ALLOWANCE)).main, len(asked.values)
    except RestError as error:
        return error, 0


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(requests)
def test_any_request_becomes_sql_or_an_answer(
    request: Wild,
) -> None:
    """Whatever is asked: SQL that parses and whose every parameter has a source, or an error with a code."""
    method, path, query, body, prefer, accept = request
    rendered, values = outcome(method, path, encoded(query), body, Head(prefer=prefer, accept=accept))
    if isinstance(rendered, RestError):
        assert rendered.code.startswith("PGRST")
        return
    postgast.parse(rendered.sql.decode("utf-8", "replace"))
    used = {int(number) for number in re.findall(rb"\$(\d+)", _without_quoted(rendered.sql))}
    assert used == set(range(1, len(rendered.sources) + 1))
    for source in rendered.sources:
        assert isinstance(source, bytes) or source < values


def _without_quoted(sql: bytes) -> bytes:
    return re.sub(rb"E'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", b"", sql)


@settings(max_examples=600, deadline=None)
@given(texts)
@example("in.()")
@example('in.("a",b)')
@example("not.like(any).{a*}")
def test_both_readings_of_a_filter_agree(text: str) -> None:
    """Where the quick one is sure, the grammar finds the same value."""
    quick = filters.skim_filter(text)
    if quick is None:
        return
    _, operation = run(filters.operation, "x", text)
    assert tuple(filters.to_bytes(operation.operand.text) for _ in [0]) == quick[1]


@settings(max_examples=600, deadline=None)
@given(trees)
@example("or(a.eq.{1,2},b.in.(1,2))")
@example("and(a.is.null,not.or(b.not.eq.1,c.like.x*))")
def test_both_readings_of_a_logic_tree_agree(tree: str) -> None:
    """Where the quick one is sure, the grammar finds the same values, or refuses the tree."""
    if tree.startswith(("id", "name", "data")):
        return
    quick = filters.skim_logic(tree[tree.find("(") :])
    if quick is None:
        return
    try:
        condition = run(filters.logic_tree, "x", tree)
    except GrammarError:
        return
    assert tuple(filters.to_bytes(operand.text) for operand in filters.operands(condition)) == quick[1]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["id", "name"]), st.sampled_from(["eq", "gt"]), st.integers()), max_size=4
    ),
    st.integers(),
    st.integers(),
)
def test_a_shape_does_not_know_the_values(
    conditions: list[tuple[str, str, int]], one: int, other: int
) -> None:
    """Two requests that differ in values only have one shape, and each its own values."""
    shapes = []
    for value in (one, other):
        query = "&".join(f"{name}={operator}.{number + value}" for name, operator, number in conditions)
        asked = skim(
            "GET", "/clients", f"{query}&or=(id.eq.{value},name.in.({value}))", Head(), OPTIONS, None
        )
        finish(asked, Head(), b"", None)
        shapes.append(asked.shape)
        assert asked.values[-1] == f'{{"{value}"}}'.encode()
    assert shapes[0] == shapes[1]
