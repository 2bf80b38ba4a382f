"""A schema cache made without a database: the tables of `fix_rest.SCHEMA` and a few oddities besides."""

from __future__ import annotations

from toft.rest.options import RestOptions
from toft.rest.parse.skim import Asked, Head, finish, meaning, skim
from toft.rest.plan.nodes import Plan
from toft.rest.plan.plan import Allowance, make_plan
from toft.rest.schema.build import build
from toft.rest.schema.facts import (
    ComputedRow,
    Facts,
    ForeignKeyRow,
    HandlerRow,
    PrimaryKeyRow,
    RepresentationRow,
    RoleRow,
    RoutineRow,
    TableRow,
    ViewRow,
)
from toft.rest.schema.model import SchemaCache

CLIENTS, PROJECTS, PEOPLE, MEMBERS, PROJECT_NAMES, DETAILS, ODD = range(1, 8)
ALL = 28
ODD_NAME = 'odd "table", 1'

#: every option on, so that plans show what it does
ALLOWANCE = Allowance(max_rows=None, aggregates=True, plans=True)


def _table(oid: int, name: str, columns: list[tuple[str, str]], key: list[str], kind: str = "r") -> TableRow:
    rows: list[tuple[str, str, str, bool, str | None, int | None, list[str], str | None, int]] = [
        (column, type_name, type_name, True, None, None, [], None, number)
        for number, (column, type_name) in enumerate(columns, 1)
    ]
    return TableRow(oid, "public", name, kind, None, ALL, key, rows)


def _key(
    name: str, oid: int, table: str, foreign_oid: int, foreign: str, *pairs: tuple[str, int, str, int]
) -> ForeignKeyRow:
    return ForeignKeyRow(name, oid, ("public", table), foreign_oid, ("public", foreign), list(pairs), False)


def _routine(
    name: str,
    parameters: list[tuple[str, str, bool]],
    returns: tuple[str, str],
    *,
    is_set: bool = False,
    is_row: bool = False,
    volatility: str = "v",
    variadic: bool = False,
) -> RoutineRow:
    rows = [(each, kind, kind, required, variadic) for each, kind, required in parameters]
    return RoutineRow(1, "public", name, None, rows, returns, is_set, is_row, False, volatility, [])


def _entry(number: int, table: int, column: int) -> str:
    origin = f":resorigtbl {table} :resorigcol {column}"
    return f"{{TARGETENTRY :expr {{VAR :varno 1}} :resno {number} :resname x {origin} :resjunk false}}"


INTEGER = ("pg_catalog", "int4")


def facts() -> Facts:
    """What the catalogue would tell."""
    unique = _key(
        "details_project_fkey", DETAILS, "details", PROJECTS, "projects", ("project_id", 1, "id", 1)
    )
    unique.is_unique = True
    return Facts(
        version="1",
        tables=[
            _table(CLIENTS, "clients", [("id", "integer"), ("name", "text")], ["id"]),
            _table(
                PROJECTS,
                "projects",
                [("id", "integer"), ("name", "text"), ("client_id", "integer"), ("data", "jsonb")],
                ["id"],
            ),
            _table(PEOPLE, "people", [("id", "integer"), ("name", "text"), ("boss_id", "integer")], ["id"]),
            _table(MEMBERS, "members", [("project_id", "integer"), ("person_id", "integer")],
                   ["person_id", "project_id"]),
            _table(PROJECT_NAMES, "project_names", [("id", "integer"), ("client", "integer")], [], "v"),
            _table(DETAILS, "details",
                   [("project_id", "integer"), ("text", "tsvector"), ("color", "public.color")],
                   ["project_id"]),
            _table(ODD, ODD_NAME, [('a "b"', "integer"), ("select", "text")], ['a "b"']),
        ],
        primary_keys=[
            PrimaryKeyRow(CLIENTS, [("id", 1)]),
            PrimaryKeyRow(PROJECTS, [("id", 1)]),
            PrimaryKeyRow(PEOPLE, [("id", 1)]),
            PrimaryKeyRow(MEMBERS, [("project_id", 1), ("person_id", 2)]),
        ],
        foreign_keys=[
            _key("projects_client_fkey", PROJECTS, "projects", CLIENTS, "clients", ("client_id", 3, "id", 1)),
            _key("people_boss_fkey", PEOPLE, "people", PEOPLE, "people", ("boss_id", 3, "id", 1)),
            _key("members_project_fkey", MEMBERS, "members", PROJECTS, "projects",
                 ("project_id", 1, "id", 1)),
            _key("members_person_fkey", MEMBERS, "members", PEOPLE, "people", ("person_id", 2, "id", 1)),
            unique,
        ],
        views=[
            ViewRow(
                PROJECT_NAMES,
                "public",
                "project_names",
                True,
                "({QUERY :commandType 1 :targetList ("
                + _entry(1, PROJECTS, 1) + " " + _entry(2, PROJECTS, 3) + ") :sortClause <>})",
                [(1, "id"), (2, "client")],
            )
        ],
        computed=[
            ComputedRow(("public", "mates"), ("public", "people"), ("public", "people"), False),
            ComputedRow(("public", "lead"), ("public", "projects"), ("public", "people"), True),
        ],
        routines=[
            _routine("add", [("a", "integer", True), ("b", "integer", False)], INTEGER, volatility="i"),
            _routine("over", [("a", "integer", True)], INTEGER),
            _routine("over", [("a", "text", True)], INTEGER),
            _routine("raw", [("", "json", True)], ("pg_catalog", "json")),
            _routine("sum_of", [("v", "integer[]", True)], INTEGER, variadic=True),
            _routine("projects_of", [("client", "integer", True)], ("public", "projects"),
                     is_set=True, is_row=True, volatility="s"),
            _routine("nothing", [], ("pg_catalog", "void")),
        ],
        representations=[
            RepresentationRow("public.color", "json", "public.color_to_json"),
            RepresentationRow("json", "public.color", "public.color_from_json"),
            RepresentationRow("text", "public.color", "public.color_from_text"),
        ],
        handlers=[HandlerRow(("public", "as_twkb"), ("public", "clients"), "application/vnd.twkb")],
        roles=[
            RoleRow("anon", [("statement_timeout", "3s"), ("default_transaction_isolation", "serializable")])
        ],
        reads_headers=False,
    )  # fmt: skip


def sample() -> SchemaCache:
    """The schema cache."""
    return build(facts(), ["public"])


def ask(
    method: str, target: str, body: bytes = b"", head: Head | None = None, options: RestOptions | None = None
) -> Asked:
    """A request, skimmed and finished."""
    path, _, query = target.partition("?")
    options = options or RestOptions(max_rows=None)
    head = head or Head()
    asked = skim(method, path, query, head, options, None)
    finish(asked, head, body, options.max_rows)
    return asked


def plan(
    method: str, target: str, body: bytes = b"", head: Head | None = None, schema: SchemaCache | None = None
) -> Plan:
    """The plan of a request."""
    request, _ = meaning(ask(method, target, body, head))
    return make_plan(schema or sample(), request, ALLOWANCE)
