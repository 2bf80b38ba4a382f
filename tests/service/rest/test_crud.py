"""What an app does with its tables through the Data API, on real Postgres."""

from __future__ import annotations

from tests.kit.fix_rest import Api

SINGLE = {"Accept": "application/vnd.pgrst.object+json"}
RETURN = {"Prefer": "return=representation"}


async def test_reading_with_filters_order_and_page(api: Api) -> None:
    """Filters are ANDed, the page is told in Content-Range, rows come in the asked order."""
    reply = await api(
        "GET", "/projects?select=id,name&id=gt.1&name=not.is.null&order=id.desc&limit=1&offset=1"
    )
    assert (reply.status, reply.json) == (200, [{"id": 2, "name": "Notes"}])
    assert reply.headers["content-range"] == "1-1/*"
    assert reply.headers["content-type"] == "application/json; charset=utf-8"


async def test_the_same_shape_takes_other_values(api: Api) -> None:
    """A second request of a shape is not planned again, and answers for its own values."""
    await api("GET", "/projects?select=name&id=eq.1&or=(name.eq.Engine,id.in.(7,8))")
    reply = await api("GET", "/projects?select=name&id=eq.3&or=(name.eq.Compiler,id.in.(9))")
    assert reply.json == [{"name": "Compiler"}]
    known = api.service.schema.known
    assert known is not None
    assert known.hits == 1


async def test_counts(api: Api) -> None:
    """An exact count is of all rows, with 206 where the page is a part; too far an offset is 416."""
    counted = {"Prefer": "count=exact"}
    reply = await api("GET", "/projects?select=id&limit=2", headers=counted)
    assert (reply.status, reply.headers["content-range"]) == (206, "0-1/4")
    assert reply.headers["preference-applied"] == "count=exact"
    reply = await api("HEAD", "/projects?select=id", headers=counted)
    assert (reply.status, reply.headers["content-range"], reply.body) == (200, "0-3/4", b"")
    reply = await api("GET", "/projects?offset=9", headers=counted)
    assert (reply.status, reply.code, reply.headers["content-range"]) == (416, "PGRST103", "*/4")
    reply = await api("GET", "/projects?select=id", headers={"Prefer": "count=planned"})
    assert reply.headers["content-range"].startswith("0-3/")


async def test_embedding(api: Api) -> None:
    """Parents, children, many-to-many, spreads, aliases and views, filtered and ordered inside."""
    reply = await api("GET", "/projects?select=id,client:clients(name)&order=id&limit=2")
    assert reply.json == [{"id": 1, "client": {"name": "Ada"}}, {"id": 2, "client": {"name": "Ada"}}]
    reply = await api(
        "GET", "/clients?select=name,projects(id)&projects.order=id.desc&projects.limit=1&order=id"
    )
    assert reply.json == [
        {"name": "Ada", "projects": [{"id": 2}]},
        {"name": "Grace", "projects": [{"id": 3}]},
    ]
    reply = await api(
        "GET", "/projects?select=id,people(name)&people.name=eq.Bob&people=not.is.null&order=id"
    )
    assert reply.json == [{"id": 1, "people": [{"name": "Bob"}]}, {"id": 3, "people": [{"name": "Bob"}]}]
    reply = await api("GET", "/projects?select=id,...clients(owner:name)&id=eq.3")
    assert reply.json == [{"id": 3, "owner": "Grace"}]
    reply = await api("GET", "/clients?select=name,...projects(titles:name)&projects.order=name&id=eq.1")
    assert reply.json == [{"name": "Ada", "titles": ["Engine", "Notes"]}]
    reply = await api("GET", "/project_names?select=name,clients!inner(name)&clients.name=eq.Grace")
    assert reply.json == [{"name": "Compiler", "clients": {"name": "Grace"}}]
    reply = await api("GET", "/people?select=name,boss_id(name),people(name)&id=eq.1")
    assert reply.json == [{"name": "Ann", "boss_id": None, "people": [{"name": "Bob"}, {"name": "Cy"}]}]


async def test_json_paths(api: Api) -> None:
    """Arrows reach into json, in select, filter and order."""
    reply = await api(
        "GET", "/projects?select=data->>kind,data->tags->0&data->>kind=eq.book&order=data->kind"
    )
    assert reply.json == [{"kind": "book", "tags": "a"}]


async def test_inserting(api: Api) -> None:
    """One row, many rows, defaults for what is missing, and what comes back."""
    reply = await api("POST", "/clients", {"id": 3, "name": "Joan"})
    assert (reply.status, reply.body, reply.headers["content-length"]) == (201, b"", "0")
    reply = await api(
        "POST", "/clients?select=name", [{"id": 4, "name": "x"}, {"id": 5, "name": "y"}], headers=RETURN
    )
    assert (reply.status, reply.json) == (201, [{"name": "x"}, {"name": "y"}])
    reply = await api(
        "POST",
        "/notes?columns=body,stars&select=body,stars",
        [{"body": "a"}, {"body": "b", "stars": 1}],
        headers={"Prefer": "return=representation,missing=default"},
        sub="u",
    )
    assert reply.json == [{"body": "a", "stars": 3}, {"body": "b", "stars": 1}]
    reply = await api("POST", "/clients", {"id": 6, "name": "z"}, headers={"Prefer": "return=headers-only"})
    assert reply.headers["location"] == "/clients?id=eq.6"
    reply = await api("POST", "/clients", {"id": 6, "name": "z"})
    assert (reply.status, reply.code) == (409, "23505")
    reply = await api("POST", "/clients", {"id": 7, "nme": "z"})
    assert (reply.status, reply.code) == (400, "PGRST204")


async def test_embedding_what_was_written(api: Api) -> None:
    """The rows that come back may embed others, though their keys are not selected."""
    reply = await api(
        "POST", "/projects?select=name,clients(name)", {"id": 9, "name": "N", "client_id": 2}, headers=RETURN
    )
    assert reply.json == [{"name": "N", "clients": {"name": "Grace"}}]


async def test_upserting(api: Api) -> None:
    """Merging answers 200 when nothing was new; ignoring leaves what is there."""
    merge = {"Prefer": "return=representation,resolution=merge-duplicates"}
    reply = await api("POST", "/clients", {"id": 1, "name": "Lovelace"}, headers=merge)
    assert (reply.status, reply.json) == (200, [{"id": 1, "name": "Lovelace"}])
    reply = await api("POST", "/clients", [{"id": 1, "name": "L"}, {"id": 8, "name": "new"}], headers=merge)
    assert reply.status == 201
    ignore = {"Prefer": "return=representation,resolution=ignore-duplicates"}
    reply = await api("POST", "/clients?on_conflict=id", {"id": 1, "name": "nobody"}, headers=ignore)
    assert (reply.status, reply.json) == (201, [])
    assert reply.headers["preference-applied"] == "resolution=ignore-duplicates, return=representation"
    reply = await api("PUT", "/clients?id=eq.8", {"id": 8, "name": "put"}, headers=RETURN)
    assert (reply.status, reply.json) == (200, [{"id": 8, "name": "put"}])
    reply = await api("PUT", "/clients?id=eq.8", {"id": 9, "name": "put"})
    assert (reply.status, reply.code) == (400, "PGRST115")


async def test_updating_and_deleting(api: Api) -> None:
    """204 by default, rows on demand; without a filter both are refused, as on the platform."""
    reply = await api("PATCH", "/clients?id=eq.1", {"name": "A"})
    assert (reply.status, reply.headers["content-range"]) == (204, "0-0/*")
    reply = await api("PATCH", "/clients?id=eq.99", {"name": "A"}, headers=RETURN)
    assert (reply.status, reply.json) == (200, [])
    reply = await api("DELETE", "/projects?id=eq.4&select=id", headers=RETURN)
    assert (reply.status, reply.json) == (200, [{"id": 4}])
    for method, body in (("PATCH", {"name": "x"}), ("DELETE", None)):
        reply = await api(method, "/projects", body)
        assert (reply.status, reply.code) == (400, "21000")
        assert reply.json["message"].endswith("requires a WHERE clause")


async def test_a_singular_write_of_many_rows_is_undone(api: Api) -> None:
    """406 says how many there were, and none of them is changed."""
    reply = await api("PATCH", "/clients?id=gt.0", {"name": "same"}, headers={**SINGLE, **RETURN})
    assert (reply.status, reply.json["details"]) == (406, "The result contains 2 rows")
    reply = await api("GET", "/clients?select=name&order=id")
    assert reply.json == [{"name": "Ada"}, {"name": "Grace"}]
    limit = {"Prefer": "handling=strict,max-affected=1"}
    reply = await api("DELETE", "/members?project_id=eq.1", headers=limit)
    assert (reply.status, reply.code) == (400, "PGRST124")
    assert len((await api("GET", "/members")).json) == 3


async def test_one_object(api: Api) -> None:
    """The singular type gives the row itself, or says how many there are."""
    reply = await api("GET", "/clients?id=eq.1", headers=SINGLE)
    assert reply.json == {"id": 1, "name": "Ada"}
    assert reply.headers["content-type"] == "application/vnd.pgrst.object+json; charset=utf-8"
    reply = await api("GET", "/clients?id=eq.0", headers=SINGLE)
    assert (reply.status, reply.code) == (406, "PGRST116")
    assert reply.json["details"] == "The result contains 0 rows"


async def test_calling_functions(api: Api) -> None:
    """By POST and GET, with defaults, results that are rows, nothing, or a value."""
    assert (await api("POST", "/rpc/add", {"a": 2, "b": 3})).body == b"5"
    assert (await api("GET", "/rpc/add?a=2")).body == b"3"
    reply = await api("GET", "/rpc/projects_of?client=1&select=id,clients(name)&id=gt.1")
    assert reply.json == [{"id": 2, "clients": {"name": "Ada"}}]
    assert (await api("POST", "/rpc/touch")).status == 204
    reply = await api("POST", "/rpc/add", {"a": 1, "c": 1})
    assert (reply.status, reply.code) == (404, "PGRST202")
    assert reply.json["hint"] == "Perhaps you meant to call the function public.add(a, b)"


async def test_csv(api: Api) -> None:
    """Rows as comma-separated values, in and out."""
    csv = {"Content-Type": "text/csv"}
    assert (await api("POST", "/clients", b"id,name\n10,Ten\n11,NULL", headers=csv)).code == "23502"
    assert (await api("POST", "/clients", b"id,name\n10,Ten\n11,Eleven", headers=csv)).status == 201
    reply = await api("GET", "/clients?id=gte.10&order=id", headers={"Accept": "text/csv"})
    assert reply.body == b"id,name\n10,Ten\n11,Eleven"


async def test_row_security_decides_for_each_role(api: Api) -> None:
    """A user sees and makes only what is theirs; a stranger sees nothing; the service sees all."""
    reply = await api("POST", "/notes", {"body": "mine"}, role="authenticated", sub="u1", headers=RETURN)
    assert reply.status == 201
    reply = await api("POST", "/notes", {"body": "x", "owner": "u2"}, role="authenticated", sub="u1")
    assert (reply.status, reply.code) == (403, "42501")
    assert len((await api("GET", "/notes", role="authenticated", sub="u1")).json) == 1
    assert (await api("GET", "/notes", role="authenticated", sub="u2")).json == []
    assert (await api("GET", "/notes", role="anon")).json == []
    assert len((await api("GET", "/notes")).json) == 1
    reply = await api("POST", "/notes", {"body": "x"}, role="anon")
    assert (reply.status, reply.code) == (401, "42501")
    assert reply.headers["www-authenticate"] == "Bearer"


async def test_timeouts_of_the_role_apply(api: Api) -> None:
    """`ALTER ROLE … SET statement_timeout` holds for requests of that role."""
    assert (await api("GET", "/rpc/timeout", role="anon")).json == "3s"
    assert (await api("GET", "/rpc/timeout", role="authenticated")).json == "8s"


async def test_errors_name_what_is_near(api: Api) -> None:
    """Unknown tables, relationships and columns are told with suggestions where there are some."""
    reply = await api("GET", "/project")
    assert (reply.status, reply.code) == (404, "PGRST205")
    assert reply.json["hint"] == "Perhaps you meant the table 'public.projects'"
    reply = await api("GET", "/projects?select=client(*)")
    assert (reply.status, reply.code) == (400, "PGRST200")
    assert reply.json["hint"] == "Perhaps you meant 'clients' instead of 'client'."
    reply = await api("GET", "/projects?nme=eq.1")
    assert (reply.status, reply.code, reply.json["message"]) == (
        400,
        "42703",
        "column projects.nme does not exist",
    )
    assert reply.headers["proxy-status"] == "PostgREST; error=42703"
