"""What a request means in a schema, and the errors when it means nothing."""

from __future__ import annotations

import pytest

from tests.kit.rest_schema import ODD_NAME, PEOPLE, PROJECTS, facts, plan
from toft.rest.errors import RestError
from toft.rest.parse.skim import Head
from toft.rest.plan.nodes import CustomMaker, EmbedShape, EmbedTest, Group, InvokePlan, WritePlan
from toft.rest.plan.suggest import CLOSE, LOOSE, closest, closest_other
from toft.rest.schema.build import build
from toft.rest.schema.facts import ForeignKeyRow

NO_MATCH = "but no matches were found"
RENAME = "Try renaming the parameters or the function itself in the database"

FAULTS = [
    ("GET", "/client", b"", 404, "PGRST205", None, "Perhaps you meant the table 'public.clients'"),
    ("GET", "/nothing_like_it", b"", 404, "PGRST205", None, None),
    ("GET", "/clients?select=project(*)", b"", 400, "PGRST200",
     "Searched for a foreign key relationship between 'clients' and 'project' in the schema 'public', "
     f"{NO_MATCH}.",
     "Perhaps you meant 'projects' instead of 'project'."),
    ("GET", "/clients?select=projects!nope(*)", b"", 400, "PGRST200",
     "Searched for a foreign key relationship between 'clients' and 'projects' using the hint 'nope' "
     f"in the schema 'public', {NO_MATCH}.",
     None),
    ("GET", "/clients?projects.id=eq.1", b"", 400, "PGRST108", None,
     "Verify that 'projects' is included in the 'select' query parameter."),
    ("GET", "/clients?select=*,projects(*)&order=projects(id)", b"", 400, "PGRST118",
     "'clients' and 'projects' do not form a many-to-one or one-to-one relationship", None),
    ("GET", "/projects?select=*&order=clients(name)", b"", 400, "PGRST108", None,
     "Verify that 'clients' is included in the 'select' query parameter."),
    ("GET", "/clients?select=name,...projects(id.sum())", b"", 400, "PGRST127",
     "Aggregates are not implemented for one-to-many or many-to-many spreads.", None),
    ("POST", "/clients", b'{"nam": 1}', 400, "PGRST204", None, None),
    ("PUT", "/clients?name=eq.x", b'{"id": 1}', 405, "PGRST105", None, None),
    ("POST", "/rpc/ad", b"{}", 404, "PGRST202",
     "Searched for the function public.ad without parameters or with a single unnamed json/jsonb parameter, "
     f"{NO_MATCH} in the schema cache.",
     None),
    ("GET", "/rpc/add?a=1&c=2", b"", 404, "PGRST202",
     f"Searched for the function public.add with parameters a, c, {NO_MATCH} in the schema cache.",
     "Perhaps you meant to call the function public.add(a, b)"),
    ("GET", "/rpc/over?a=1", b"", 300, "PGRST203", None,
     f"{RENAME} so function overloading can be resolved"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "target", "body", "status", "code", "details", "hint"), FAULTS)
def test_faults(
    method: str, target: str, body: bytes, status: int, code: str, details: str | None, hint: str | None
) -> None:
    """Status, code, details and hint as clients know them."""
    with pytest.raises(RestError) as caught:
        plan(method, target, body)
    error = caught.value
    assert (error.status, error.code, error.details, error.hint) == (status, code, details, hint)


def test_an_ambiguous_embed_lists_the_ways() -> None:
    """PGRST201 with one entry per relationship, and how to spell each."""
    found = facts()
    owner = ForeignKeyRow(
        "owner_fkey",
        PROJECTS,
        ("public", "projects"),
        PEOPLE,
        ("public", "people"),
        [("id", 1, "id", 1)],
        False,
    )
    found.foreign_keys.append(owner)
    with pytest.raises(RestError) as caught:
        plan("GET", "/projects?select=people(*)", schema=build(found, ["public"]))
    error = caught.value
    assert (error.status, error.code) == (300, "PGRST201")
    members = "members using members_project_fkey(project_id) and members_person_fkey(person_id)"
    assert error.details == [
        {
            "cardinality": "many-to-one",
            "embedding": "projects with people",
            "relationship": "owner_fkey using projects(id) and people(id)",
        },
        {"cardinality": "many-to-many", "embedding": "projects with people", "relationship": members},
    ]
    assert error.hint == (
        "Try changing 'people' to one of the following: 'people!owner_fkey', 'people!members'. "
        "Find the desired relationship in the 'details' key."
    )


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        ("/projects?select=clients(*)", EmbedShape.OBJECT),
        ("/projects?select=client_id(*)", EmbedShape.OBJECT),
        ("/projects?select=projects_client_fkey(*)", EmbedShape.OBJECT),
        ("/clients?select=projects!projects_client_fkey(*)", EmbedShape.ARRAY),
        ("/clients?select=projects!client_id(*)", EmbedShape.ARRAY),
        ("/projects?select=details(*)", EmbedShape.OBJECT),
        ("/projects?select=people!members(*)", EmbedShape.ARRAY),
        ("/projects?select=lead(*)", EmbedShape.OBJECT),
        ("/people?select=boss_id(*)", EmbedShape.OBJECT),
        ("/people?select=people(*)", EmbedShape.ARRAY),
        ("/people?select=mates(*)", EmbedShape.ARRAY),
        ("/projects?select=...clients(*)", EmbedShape.SPREAD_ONE),
        ("/clients?select=...projects(*)", EmbedShape.SPREAD_MANY),
    ],
)
def test_what_an_embed_becomes(target: str, shape: EmbedShape) -> None:
    """By table, column, constraint, junction or function."""
    assert plan("GET", target).read.embeds[0].shape is shape


def test_a_null_filter_on_an_embed() -> None:
    """It asks for the embed's rows, also inside a logic tree; any other operator is about a column."""
    found = plan("GET", "/clients?select=*,projects(*)&or=(projects.not.is.null,id.eq.1)").read
    [group] = found.where
    assert isinstance(group, Group)
    assert group.terms[0] == EmbedTest("clients_projects_1", wants_rows=True)
    [other] = plan("GET", "/clients?select=*,projects(*)&projects=eq.1").read.where
    assert not isinstance(other, EmbedTest)


def test_what_a_write_must_return() -> None:
    """Keys of embeds and the primary key come back besides what is selected, each once and sorted."""
    wants = Head(prefer="return=representation")
    found = plan("POST", "/projects?select=name,clients(name)", b'{"name": "x"}', wants)
    assert isinstance(found, WritePlan)
    assert found.mutate.returning == ("client_id", "id", "name")
    found = plan("POST", "/projects?select=name,lead(name)", b'{"name": "x"}', wants)
    assert isinstance(found, WritePlan)
    assert found.mutate.returning == ("*",)
    found = plan("POST", "/projects?select=name", b'{"name": "x"}')
    assert isinstance(found, WritePlan)
    assert (found.mutate.returning, found.maker.kind) == ((), "none")


def test_what_is_told_as_applied() -> None:
    """Only what was honoured, in a fixed order."""
    head = Head(
        prefer="return=minimal,count=exact,resolution=merge-duplicates,missing=default,max-affected=3"
    )
    assert plan("POST", "/clients", b'{"id": 1}', head).applied == (
        "resolution=merge-duplicates",
        "missing=default",
        "return=minimal",
        "count=exact",
    )
    assert plan("GET", "/clients", head=head).applied == ("count=exact",)
    strict = Head(prefer="handling=strict,max-affected=3")
    assert plan("DELETE", "/clients?id=eq.1", head=strict).applied == ("handling=strict", "max-affected=3")


def test_calls() -> None:
    """Overloads by the names of arguments; arguments from query, body, or the body itself."""
    found = plan("GET", "/rpc/add?a=1")
    assert isinstance(found, InvokePlan)
    assert [parameter.name for parameter in found.call.parameters] == ["a"]
    assert found.is_read_only
    found = plan("POST", "/rpc/raw", b'{"x": 1}')
    assert isinstance(found, InvokePlan)
    assert found.call.takes_body
    assert not found.is_read_only
    found = plan("GET", "/rpc/projects_of?client=1&select=id,clients(name)&name=eq.x")
    assert isinstance(found, InvokePlan)
    assert found.call.returning == ("client_id", "id", "name")


def test_media_types() -> None:
    """Built-in ones, the user's own for plain rows of their table, plans, and none at all."""
    assert plan("GET", "/clients", head=Head(accept="text/csv")).maker.kind == "csv"
    custom = plan("GET", "/clients", head=Head(accept="application/vnd.twkb"))
    assert isinstance(custom.maker, CustomMaker)
    assert custom.media.text == "application/vnd.twkb"
    with pytest.raises(RestError, match="PGRST107"):
        plan("GET", "/clients?select=id", head=Head(accept="application/vnd.twkb"))
    with pytest.raises(RestError, match="PGRST107"):
        plan("GET", "/projects", head=Head(accept="application/vnd.twkb"))
    explained = plan("GET", "/clients", head=Head(accept="application/vnd.pgrst.plan+json; options=analyze"))
    assert explained.media.plan_options == ("analyze",)


def test_strict_preferences() -> None:
    """Unknown ones are refused when asked to be strict, and for reads the media type is judged first."""
    head = Head(prefer="handling=strict,foo", accept="image/png")
    with pytest.raises(RestError, match="PGRST107"):
        plan("GET", "/clients", head=head)
    with pytest.raises(RestError, match="PGRST122"):
        plan("DELETE", "/clients?id=eq.1", head=head)


def test_odd_names() -> None:
    """Names are taken as they are, wherever they stand."""
    found = plan("GET", '/odd%20"table",%201?select="a \\"b\\"","select"')
    assert found.name.name == ODD_NAME
    assert [item.field.name for item in found.read.selects] == ['a "b"', "select"]


def test_suggestions() -> None:
    """The nearest name, if it is near; nothing when the name itself is there."""
    names = ["films", "directors", "roles", "actors"]
    assert closest("film", names, CLOSE) == "films"
    assert closest("actor", names, LOOSE) == "actors"
    assert closest("zebra", names, LOOSE) is None
    assert closest_other("films", names) is None
    assert closest("", [], LOOSE) is None
