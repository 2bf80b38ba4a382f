"""Rows of the catalogue as a schema cache: keys of views, relationships, what a rule's text tells."""

from __future__ import annotations

from tests.kit.rest_schema import facts, sample
from toft.rest.schema.build import build
from toft.rest.schema.model import Cardinality, Name, Relationship
from toft.rest.schema.rules import read_origins, trace


def ways(origin: str) -> set[tuple[str, str, str]]:
    """(target, cardinality, by what) of each relationship."""
    found = sample().relationships[Name("public", origin)]
    return {(each.target.name, each.cardinality.value, _by(each)) for each in found}


def _by(relationship: Relationship) -> str:
    if relationship.function is not None:
        return relationship.function.name
    return relationship.constraint or (relationship.junction.table.name if relationship.junction else "")


def test_relationships_of_a_table() -> None:
    """Its foreign keys, those that point to it, across junctions, by functions, and to views."""
    assert ways("projects") == {
        ("clients", "many-to-one", "projects_client_fkey"),
        ("members", "one-to-many", "members_project_fkey"),
        ("people", "many-to-many", "members"),
        ("details", "one-to-one", "details_project_fkey"),
        ("people", "computed-one", "lead"),
    }


def test_relationships_of_a_view() -> None:
    """A view that shows the columns of a key has that key, at either end; a key of it is its primary key."""
    assert ways("project_names") == {
        ("clients", "many-to-one", "projects_client_fkey"),
        ("members", "one-to-many", "members_project_fkey"),
        ("people", "many-to-many", "members"),
        ("details", "one-to-one", "details_project_fkey"),
    }
    assert ("project_names", "one-to-many", "projects_client_fkey") in ways("clients")
    assert sample().tables[Name("public", "project_names")].primary_key == ("id",)


def test_a_table_that_references_itself() -> None:
    """One foreign key, both directions."""
    found = sample().relationships[Name("public", "people")]
    kinds = {each.cardinality for each in found if each.is_self and each.function is None}
    assert kinds == {Cardinality.MANY_TO_ONE, Cardinality.ONE_TO_MANY}


def test_what_is_not_exposed() -> None:
    """Relationships into schemas that are not exposed are not kept."""
    schema = build(facts(), ["other"])
    assert schema.relationships == {}


def test_settings_of_roles() -> None:
    """Isolation is kept apart, since it cannot be set once a transaction has begun."""
    schema = sample()
    assert schema.role_settings == {"anon": (("statement_timeout", "3s"),)}
    assert schema.role_isolation == {"anon": "serializable"}


def test_overloads_are_sorted_by_their_number_of_parameters() -> None:
    """So that error texts list them always alike."""
    found = sample().routines[Name("public", "over")]
    assert [routine.signature for routine in found] == ["public.over(a => integer)", "public.over(a => text)"]


def test_rules_of_nested_queries() -> None:
    """Only the view's own entries count; braces in names and entries of subqueries do not confuse."""
    inner = "{TARGETENTRY :expr {VAR} :resno 1 :resorigtbl 99 :resorigcol 9}"
    outer = (
        r"{TARGETENTRY :expr {SUBLINK :subselect {QUERY :targetList ("
        + inner
        + r")}} :resno 1 :resname \{x :resorigtbl 0 :resorigcol 0}"
    )
    plain = "{TARGETENTRY :expr {VAR} :resno 2 :resname y :resorigtbl 7 :resorigcol 3}"
    assert read_origins("({QUERY :targetList (" + outer + " " + plain + ")})") == {2: (7, 3)}


def test_views_of_views() -> None:
    """A column is traced down to its table, each view on the way counting too; circles end."""
    origins = {1: {1: (2, 1), 2: (2, 1)}, 2: {1: (3, 5)}}
    assert trace(origins, 1) == {(2, 1): [1, 2], (3, 5): [1, 2]}
    assert trace({1: {1: (2, 1)}, 2: {1: (1, 1)}}, 1) == {(2, 1): [1], (1, 1): [1]}
