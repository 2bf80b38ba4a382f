"""Names that break what does not quote: whatever they are, the SQL is the same but for them."""

from __future__ import annotations

import json
import re

import postgast
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.kit.rest_requests import encoded
from tests.kit.rest_schema import ALL, plan
from toft.rest.parse.skim import Head
from toft.rest.render.statement import render
from toft.rest.schema.build import build
from toft.rest.schema.facts import Facts, ForeignKeyRow, PrimaryKeyRow, TableRow
from toft.rest.schema.model import SchemaCache

PLAIN = ("parent", "child", "key", "word", "parent_key")

type Names = tuple[str, str, str, str, str]

# fmt: off
ODD = [
    "select", "order", "table", "user", "null", "a.b", "a,b", "a(b)", 'a"b', '"', "a\\b", "\\", "'", "a'b",
    "1st", "0", " ", "a b", "$1", "::", "->", "->>", ":", "!", "...", "&", "=", "?", "%", "--", "/*", "é",
    "日本", "🙂", "ﬁ", "x" * 63, "é" * 31, "\t", "A", "Select", "eq.1", "not.eq", "and", "or()", "limit",
    "offset", "columns", "count()",
]
# fmt: on
letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
#: `*` alone means all columns, quoted or not, as upstream has it
names = st.one_of(
    st.sampled_from(ODD),
    st.text(letters, min_size=1, max_size=20).filter(lambda name: len(name.encode()) <= 63 and name != "*"),
)
distinct = st.lists(names, min_size=5, max_size=5, unique=True).map(tuple)


def schema(given_names: Names) -> SchemaCache:
    """A parent and its children, called so."""
    parent, child, key, word, parent_key = given_names

    def table(oid: int, name: str, columns: list[tuple[str, str]]) -> TableRow:
        rows = [
            (column, kind, kind, True, None, None, list[str](), None, number)
            for number, (column, kind) in enumerate(columns, 1)
        ]
        return TableRow(oid, "public", name, "r", None, ALL, [key], rows)

    return build(
        Facts(
            version="1",
            tables=[
                table(1, parent, [(key, "integer"), (word, "text")]),
                table(2, child, [(key, "integer"), (parent_key, "integer")]),
            ],
            primary_keys=[PrimaryKeyRow(1, [(key, 1)]), PrimaryKeyRow(2, [(key, 1)])],
            foreign_keys=[
                ForeignKeyRow(
                    "fk", 2, ("public", child), 1, ("public", parent), [(parent_key, 2, key, 1)], False
                )
            ],
            views=[],
            computed=[],
            routines=[],
            representations=[],
            handlers=[],
            roles=[],
            reads_headers=False,
        ),
        ["public"],
    )


def quoted(name: str) -> str:
    """As a client writes a name that is no plain word."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def asked(given_names: Names) -> list[tuple[str, str, bytes, str]]:
    """Method, target, body and preference of requests that use every name."""
    parent, child, key, word, _ = given_names
    p, c, k, w, f = (quoted(name) for name in given_names)
    path = "/" + encoded([(parent,)])  # pyright: ignore[reportArgumentType]  (one part, no value)
    body = json.dumps([{key: 1, word: "x"}]).encode()
    read = encoded([
        ("select", f"{k},{w}::text,x:{w},{c}({k},{f})"),
        ("or", f"({k}.eq.1,and({w}.like.a*,{k}.not.is.null))"),
        ("order", f"{w}.desc,{k}"),
    ])  # fmt: skip
    returned = encoded([("select", f"{k},{c}({f})"), ("columns", f"{k},{w}"), ("on_conflict", k)])
    back = "return=representation,resolution=merge-duplicates"
    up = "/" + encoded([(child,)])  # pyright: ignore[reportArgumentType]
    return [
        ("GET", f"{path}?{read}", b"", "count=exact"),
        ("GET", f"{up}?{encoded([('select', f'{k},...{p}({w})'), ('order', f'{p}({w})')])}", b"", ""),
        ("POST", f"{path}?{returned}", body, back),
        ("PATCH", f"{path}?{encoded([('and', f'({k}.gt.1)')])}", json.dumps({word: None}).encode(), ""),
        ("DELETE", f"{path}?{encoded([('and', f'({w}.eq.1)'), ('select', k)])}", b"", back),
    ]


def frame(sql: str) -> list[str]:
    """What is left of a statement without its quoted names and texts; sorted, as columns of a body are."""
    bare = re.sub(r"E?'(?:[^'\\]|\\.|'')*'|\"(?:[^\"]|\"\")*\"", "Q", sql)
    return sorted(re.split(r"[\s,()]+", bare))


def statements(given_names: Names) -> list[str]:
    known = schema(given_names)
    return [
        render(plan(method, target, body, Head(prefer=prefer), known)).main.sql.decode()
        for method, target, body, prefer in asked(given_names)
    ]


WANTED = [frame(sql) for sql in statements(PLAIN)]


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(distinct)
@example(('a"b', "a\\b", "a'b", "select", "1st"))
@example(("x" * 63, "é" * 31, "a.b", "a,b", "a(b)"))
def test_names_are_always_quoted(given_names: Names) -> None:
    """Each statement parses, and differs from that over plain names in quoted parts only."""
    found = statements(given_names)
    for sql, wanted in zip(found, WANTED, strict=True):
        postgast.parse(sql)
        assert frame(sql) == wanted
