"""Every method of the builders of postgrest-py, compared with what SQL says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import postgrest._async.request_builder as request_builder
import pytest
from postgrest import APIError, AsyncPostgrestClient, CountMethod, ReturnMethod

from tests.kit.fix_rest import Api, make_api, make_caller
from tests.kit.fix_supabase import SupabaseCluster
from toft.http.message import Request, Response
from toft.http.server import listen
from toft.rest.options import RestOptions

SCHEMA = """
create table public.things (
  id int primary key, name text, tags text[], span int4range, document jsonb, words tsvector);
insert into public.things values
  (1, 'Alpha', '{a,b}', '[1,5)', '{"k": 1}', to_tsvector('english', 'fat cats ate rats')),
  (2, 'beta', '{b,c}', '[5,9)', '{"k": 2}', to_tsvector('english', 'the dog sleeps')),
  (3, null, '{}', '[20,30)', null, null);
create table public.parts (id int primary key, thing_id int references public.things, label text);
insert into public.parts values (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'z');
create function public.things_named(prefix text) returns setof public.things language sql stable
  as $$ select * from public.things where name ilike prefix || '%' $$;
create function public.twice(n int) returns int language sql immutable as 'select n * 2';
grant all on all tables in schema public to service_role;
"""

type Builder = Any

#: what is asked through the client, and the ids that SQL gives
FILTERS: list[tuple[Callable[[Builder], Builder], str]] = [
    (lambda q: q.eq("id", 1), "id = 1"),
    (lambda q: q.neq("id", 1), "id <> 1"),
    (lambda q: q.gt("id", 1), "id > 1"),
    (lambda q: q.gte("id", 2), "id >= 2"),
    (lambda q: q.lt("id", 2), "id < 2"),
    (lambda q: q.lte("id", 2), "id <= 2"),
    (lambda q: q.like("name", "%a"), "name like '%a'"),
    (lambda q: q.ilike("name", "a%"), "name ilike 'a%'"),
    (lambda q: q.like_any_of("name", "A%,b%"), "name like any ('{A%,b%}')"),
    (lambda q: q.like_all_of("name", "A%,%a"), "name like all ('{A%,%a}')"),
    (lambda q: q.ilike_any_of("name", "a%,B%"), "name ilike any ('{a%,B%}')"),
    (lambda q: q.ilike_all_of("name", "a%,%A"), "name ilike all ('{a%,%A}')"),
    (lambda q: q.is_("name", "null"), "name is null"),
    (lambda q: q.not_.is_("name", "null"), "name is not null"),
    (lambda q: q.in_("id", [1, 3]), "id in (1, 3)"),
    (lambda q: q.not_.in_("name", ['q"u,ote', "beta"]), "name not in ('q\"u,ote', 'beta')"),
    (lambda q: q.contains("tags", ["b"]), "tags @> '{b}'"),
    (lambda q: q.contains("document", {"k": 1}), "document @> '{\"k\": 1}'"),
    (lambda q: q.contained_by("tags", ["a", "b", "z"]), "tags <@ '{a,b,z}'"),
    (lambda q: q.cs("tags", ["c"]), "tags @> '{c}'"),
    (lambda q: q.cd("tags", ["b", "c"]), "tags <@ '{b,c}'"),
    (lambda q: q.overlaps("tags", ["c", "z"]), "tags && '{c,z}'"),
    (lambda q: q.ov("tags", ["a"]), "tags && '{a}'"),
    (lambda q: q.range_gt("span", [4, 6]), "span >> '(4,6)'"),
    (lambda q: q.range_gte("span", [5, 9]), "span &> '(5,9)'"),
    (lambda q: q.range_lt("span", [10, 15]), "span << '(10,15)'"),
    (lambda q: q.range_lte("span", [1, 9]), "span &< '(1,9)'"),
    (lambda q: q.range_adjacent("span", [8, 12]), "span -|- '(8,12)'"),
    (lambda q: q.sl("span", [9, 12]), "span << '(9,12)'"),
    (lambda q: q.sr("span", [0, 4]), "span >> '(0,4)'"),
    (lambda q: q.nxl("span", [5, 9]), "span &> '(5,9)'"),
    (lambda q: q.nxr("span", [1, 9]), "span &< '(1,9)'"),
    (lambda q: q.adj("span", [8, 12]), "span -|- '(8,12)'"),
    (lambda q: q.fts("words", "cat"), "words @@ to_tsquery('cat')"),
    (lambda q: q.plfts("words", "fat rat"), "words @@ plainto_tsquery('fat rat')"),
    (lambda q: q.phfts("words", "fat cats"), "words @@ phraseto_tsquery('fat cats')"),
    (lambda q: q.wfts("words", "cat or dog"), "words @@ websearch_to_tsquery('cat or dog')"),
    (lambda q: q.text_search("words", "cat", {"config": "english"}), "words @@ to_tsquery('english', 'cat')"),
    (lambda q: q.match({"id": 2, "name": "beta"}), "id = 2 and name = 'beta'"),
    (lambda q: q.filter("id", "in", "(1,2)"), "id in (1, 2)"),
    (lambda q: q.or_("id.eq.1,and(id.gt.1,name.is.null)"), "id = 1 or (id > 1 and name is null)"),
    (lambda q: q.eq("document->>k", "2"), "document->>'k' = '2'"),
    (lambda q: q.order("id", desc=True).limit(1), "id = 3"),
    (lambda q: q.order("id").range(1, 2), "id in (2, 3)"),
    (lambda q: q.order("name", nullsfirst=True).limit(1), "id = 3"),
    (lambda q: q.order("id").limit(1).offset(1), "id = 2"),
]


@pytest.fixture
async def client(supabase: SupabaseCluster) -> AsyncIterator[AsyncPostgrestClient]:
    """postgrest-py, over HTTP, as service_role."""
    tenant = await supabase.connect()
    await tenant.script(SCHEMA)
    api: Api = make_api(supabase, RestOptions(plans=True))

    async def handle(request: Request) -> Response:
        return await api.service.handle(request, make_caller("service_role"), request.raw_path)

    listener = await listen(handle)
    async with AsyncPostgrestClient(f"http://127.0.0.1:{listener.port}") as made:
        yield made
    await listener.close()
    api.pool.close()


@pytest.mark.parametrize("supabase", [18], indirect=True)
async def test_reading(supabase: SupabaseCluster, client: AsyncPostgrestClient) -> None:
    """Each filter and modifier finds the rows that SQL finds."""
    tenant = await supabase.connect()
    for number, (ask, condition) in enumerate(FILTERS):
        reply = await ask(client.from_("things").select("id")).execute()
        wanted = await tenant.query(f"select id from public.things where {condition} order by id")
        found = sorted(str(row["id"]) for row in reply.data)
        assert found == [row[0] for row in wanted], (number, condition)


@pytest.mark.parametrize("supabase", [18], indirect=True)
async def test_shapes_of_answers(client: AsyncPostgrestClient) -> None:
    """One row, perhaps one, CSV, a count, only a count, a plan, without nulls, embedded."""
    things = client.from_("things")
    assert (await things.select("name").eq("id", 1).single().execute()).data == {"name": "Alpha"}
    assert await things.select("name").eq("id", 9).maybe_single().execute() is None
    with pytest.raises(APIError, match="PGRST116"):
        await things.select("name").single().execute()
    assert (await things.select("id").lte("id", 2).order("id").csv().execute()).data == "id\n1\n2"
    counted = await things.select("id", count=CountMethod.exact).limit(1).execute()
    assert (counted.count, len(counted.data)) == (3, 1)
    assert (await things.select("*", count=CountMethod.exact, head=True).execute()).count == 3
    assert (await things.select("id").eq("id", 1).retry(enabled=False).execute()).data == [{"id": 1}]
    assert "Scan" in str(await things.select("id").explain().execute())
    assert (await things.select("id,name").eq("id", 3).strip_nulls().execute()).data == [{"id": 3}]
    nested = (
        await things.select("id,parts(label)")
        .order("label", foreign_table="parts", desc=True)
        .eq("id", 1)
        .execute()
    )
    assert nested.data == [{"id": 1, "parts": [{"label": "y"}, {"label": "x"}]}]


@pytest.mark.parametrize("supabase", [18], indirect=True)
async def test_writing(client: AsyncPostgrestClient) -> None:
    """Insert, upsert, update, delete, each with and without rows back."""
    parts = client.from_("parts")
    assert (await parts.insert({"id": 10, "label": "n"}).execute()).data == [
        {"id": 10, "thing_id": None, "label": "n"}
    ]
    assert (await parts.insert({"id": 11}, returning=ReturnMethod.minimal).execute()).data == []
    many = await parts.insert(
        [{"id": 12, "label": "a"}, {"id": 13}], default_to_null=False, count=CountMethod.exact
    ).execute()
    assert (len(many.data), many.count) == (2, 2)
    await parts.upsert({"id": 10, "label": "m"}).execute()
    await parts.upsert({"id": 10, "label": "never"}, ignore_duplicates=True, on_conflict="id").execute()
    assert (await parts.select("label").eq("id", 10).execute()).data == [{"label": "m"}]
    assert (await parts.update({"label": "u"}).in_("id", [10, 11]).execute()).data[1]["label"] == "u"
    with pytest.raises(APIError, match="PGRST124"):
        await parts.delete().gt("id", 9).max_affected(1).execute()
    assert len((await parts.delete(count=CountMethod.exact).gt("id", 9).execute()).data) == 4
    with pytest.raises(APIError, match="requires a WHERE clause"):
        await parts.delete().execute()


@pytest.mark.parametrize("supabase", [18], indirect=True)
async def test_calling(client: AsyncPostgrestClient) -> None:
    """By POST, by GET, with filters on the rows."""
    assert (await client.rpc("twice", {"n": 4}).execute()).data == 8
    assert (await client.rpc("twice", {"n": 5}, get=True).execute()).data == 10
    rows = await client.rpc("things_named", {"prefix": "a"}).select("id,parts(id)").execute()
    assert rows.data == [{"id": 1, "parts": [{"id": 1}, {"id": 2}]}]
    counted = await client.rpc("things_named", {"prefix": ""}, count=CountMethod.exact, head=True).execute()
    assert counted.count == 2
    with pytest.raises(APIError, match="PGRST202"):
        await client.rpc("nothing", {}).execute()


@pytest.mark.parametrize("supabase", [18], indirect=True)
async def test_other_schemas(client: AsyncPostgrestClient) -> None:
    """A schema that is not exposed is told with those that are."""
    with pytest.raises(APIError, match="PGRST106"):
        await client.schema("auth").from_("users").select("id").execute()


def test_every_method_is_driven() -> None:
    """No public method of a builder is missing above."""
    above = Path(__file__).read_text()
    builders = [kind for name, kind in vars(request_builder).items() if name.endswith("Builder")]
    methods = {name for kind in builders for name in dir(kind) if not name.startswith("_")}
    called = {name for name in methods if f".{name}(" in above or f".{name}." in above}
    data = {name for name in methods if not any(callable(getattr(kind, name, None)) for kind in builders)}
    assert methods - called - data == set()
