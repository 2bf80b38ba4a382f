"""The SQL of typical requests, as it is sent. `ACCEPT_GOLDEN=1` writes what is rendered as the new truth."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kit.rest_schema import ask, plan
from toft.rest.parse.skim import Head
from toft.rest.render.statement import render

FOLDER = Path(__file__).parents[2] / "golden" / "sql"
WANTS_ROWS = "return=representation"

#: name of the file → method, target, body, headers
REQUESTS: dict[str, tuple[str, str, bytes, Head]] = {
    "read-plain": ("GET", "/clients", b"", Head()),
    "read-filters": (
        "GET",
        "/projects?select=id,name::text,data->a->>0&id=gt.1&name=not.like.x*&id=in.(1,2)&client_id=is.null"
        "&or=(name.eq.a,not.and(id.lt.3,name.match(any).{a,b}))&order=name.desc.nullslast,id&limit=5&offset=2",
        b"",
        Head(),
    ),
    "read-search": ("GET", "/details?text=fts(english).cat&color=eq.red", b"", Head()),
    "read-embeds": (
        "GET",
        "/projects?select=id,clients!inner(name),people(name),details(),lead(name)&people.name=eq.x"
        "&people.limit=3&order=clients(name)&details=not.is.null",
        b"",
        Head(),
    ),
    "read-spreads": (
        "GET", "/clients?select=name,...projects(id,...details(color))&projects.order=name.desc", b"", Head(),
    ),
    "read-aggregates": (
        "GET", "/projects?select=name.max(),client_id,count(),...clients!inner(id.sum(),name)", b"", Head(),
    ),
    "read-counted": (
        "GET", "/clients?select=*,projects!inner(id)&projects.id=eq.1", b"", Head(prefer="count=exact"),
    ),
    "read-csv": ("GET", "/clients?limit=1", b"", Head(accept="text/csv")),
    "read-singular": ("GET", "/clients?id=eq.1", b"", Head(accept="application/vnd.pgrst.object+json")),
    "insert": ("POST", "/clients", b'[{"id": 1, "name": "x"}]', Head()),
    "insert-representation": (
        "POST", "/projects?select=name,clients(name)", b'{"name": "x"}', Head(prefer=WANTS_ROWS),
    ),
    "insert-defaults": (
        "POST", "/details?columns=color,project_id", b'[{"color": "red"}]', Head(prefer="missing=default"),
    ),
    "insert-located": (
        "POST", "/members", b'{"project_id": 1, "person_id": 1}', Head(prefer="return=headers-only"),
    ),
    "upsert-merge": (
        "POST", "/clients?on_conflict=id", b'{"id": 1}', Head(prefer="resolution=merge-duplicates"),
    ),
    "upsert-ignore": ("POST", "/clients", b'{"id": 1}', Head(prefer="resolution=ignore-duplicates")),
    "put": ("PUT", "/clients?id=eq.1", b'{"id": 1, "name": "x"}', Head(prefer=WANTS_ROWS)),
    "update": ("PATCH", "/clients?id=eq.1&or=(name.eq.a,name.is.null)", b'{"name": "x"}', Head()),
    "update-nothing": ("PATCH", "/clients?id=eq.1", b"{}", Head(prefer=WANTS_ROWS)),
    "delete-limited": ("DELETE", "/clients?id=gt.1", b"", Head(prefer="handling=strict,max-affected=2")),
    "call-get": ("GET", "/rpc/add?a=1&b=2", b"", Head()),
    "call-post": ("POST", "/rpc/add", b'{"a": 1}', Head()),
    "call-rows": ("GET", "/rpc/projects_of?client=1&select=id,clients(name)&name=eq.x&limit=2", b"", Head()),
    "call-raw": ("POST", "/rpc/raw", b'{"x": 1}', Head()),
    "call-variadic": ("GET", "/rpc/sum_of?v=1&v=2", b"", Head()),
    "odd-names": ("GET", '/odd%20"table",%201?select="a \\"b\\"","select"&"a \\"b\\""=eq.1', b"", Head()),
}  # fmt: skip


def rendered(name: str) -> str:
    """The request, its values and its SQL, a clause to a line."""
    method, target, body, head = REQUESTS[name]
    statements = render(plan(method, target, body, head))
    sql = statements.main.sql.decode()
    for word in (
        " FROM ",
        " WHERE ",
        " LEFT JOIN ",
        " INNER JOIN ",
        " ORDER BY ",
        " RETURNING ",
        " ON CONFLICT",
    ):
        sql = sql.replace(word, f"\n{word.lstrip()}")
    values = ask(method, target, body, head).values
    return f"-- {method} {target}\n-- values {values}, parameters {statements.main.sources}\n{sql};\n"


@pytest.mark.parametrize("name", REQUESTS)
def test_sql(name: str) -> None:
    """It is what it was."""
    path = FOLDER / f"{name}.sql"
    found = rendered(name)
    if os.environ.get("ACCEPT_GOLDEN"):
        path.write_text(found)
    assert found == path.read_text()


def test_nothing_is_left_over() -> None:
    """Every expected text belongs to a request."""
    assert {path.stem for path in FOLDER.glob("*.sql")} == set(REQUESTS)
