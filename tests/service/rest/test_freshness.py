"""After DDL has committed, the next request knows it: no notification, no wait, no restart."""

from __future__ import annotations

import asyncio

from tests.kit.fix_rest import Api, make_api
from tests.kit.fix_supabase import SupabaseCluster
from toft.rest.prepared import Prepared
from toft.rest.schema.store import SchemaStore

#: pairs of a change and a request; the long run has fifty times as many
PAIRS = 200


async def test_a_request_after_each_change_sees_it(supabase: SupabaseCluster, api: Api) -> None:
    """Columns come, change their type and go; plans and prepared statements follow each time."""
    tenant = await supabase.connect()
    await tenant.script(
        "create table public.shifting (id int, c0 int); insert into public.shifting values (1, 0)"
    )
    await tenant.script("grant select on public.shifting to service_role")
    for number in range(1, PAIRS + 1):
        match number % 4:
            case 0:
                await tenant.script(f"alter table public.shifting rename column c{number - 1} to c{number}")
            case 1:
                await tenant.script(f"alter table public.shifting add column c{number} int default {number}")
                await tenant.script(f"alter table public.shifting drop column c{number - 1}")
            case 2:
                await tenant.script(f"alter table public.shifting rename column c{number - 1} to c{number}")
                await tenant.script(
                    f"alter table public.shifting alter c{number} type text using c{number}::text"
                )
            case _:
                await tenant.script(f"alter table public.shifting rename column c{number - 1} to c{number}")
                await tenant.script(
                    f"alter table public.shifting alter c{number} type int using c{number}::int"
                )
        reply = await api("GET", "/shifting")
        assert reply.status == 200, (number, reply)
        assert set(reply.json[0]) == {"id", f"c{number}"}, number


async def test_new_things_are_found_at_once(supabase: SupabaseCluster, api: Api) -> None:
    """A table, a foreign key, a function, each used by the very next request."""
    tenant = await supabase.connect()
    assert (await api("GET", "/fresh")).code == "PGRST205"
    await tenant.script("create table public.fresh (id int primary key, client_id int)")
    await tenant.script("grant all on public.fresh to service_role")
    assert (await api("POST", "/fresh", {"id": 1, "client_id": 1})).status == 201
    assert (await api("GET", "/fresh?select=id,clients(name)")).code == "PGRST200"
    await tenant.script("alter table public.fresh add foreign key (client_id) references public.clients")
    reply = await api("GET", "/fresh?select=id,clients(name)")
    assert reply.json == [{"id": 1, "clients": {"name": "Ada"}}]
    assert (await api("POST", "/rpc/newborn")).code == "PGRST202"
    await tenant.script("create function public.newborn() returns int language sql as 'select 7'")
    assert (await api("POST", "/rpc/newborn")).body == b"7"
    await tenant.script("drop table public.fresh")
    assert (await api("GET", "/fresh")).code == "PGRST205"


async def test_a_function_whose_nature_changes(supabase: SupabaseCluster, api: Api) -> None:
    """One that begins to write is no longer called in a read-only transaction."""
    tenant = await supabase.connect()
    await tenant.script("create function public.act() returns int language sql stable as 'select 1'")
    assert (await api("POST", "/rpc/act")).body == b"1"
    await tenant.script(
        "create or replace function public.act() returns int language sql volatile security definer as "
        "$$ insert into public.clients values (50, 'made') returning id $$"
    )
    assert (await api("POST", "/rpc/act")).body == b"50"


async def test_settings_of_a_role_are_followed(supabase: SupabaseCluster, api: Api) -> None:
    """No event trigger sees ALTER ROLE, yet the next request runs under the new setting."""
    assert (await api("GET", "/rpc/timeout", role="anon")).json == "3s"
    admin = await supabase.connect("supabase_admin")
    await admin.script("alter role anon set statement_timeout = '5s'")
    assert (await api("GET", "/rpc/timeout", role="anon")).json == "5s"


async def test_changes_under_load(supabase: SupabaseCluster, api: Api) -> None:
    """While tables change, each request is answered by the old schema or the new, and never with an error."""
    tenant = await supabase.connect()

    async def ask() -> None:
        for _ in range(60):
            reply = await api("GET", "/clients?select=*&order=id")
            assert reply.status == 200, reply

    async def change() -> None:
        for number in range(20):
            await tenant.script(f"alter table public.clients add column extra{number} int")

    await asyncio.gather(ask(), ask(), ask(), change())
    assert "extra19" in (await api("GET", "/clients?limit=1")).json[0]


async def test_backends_of_a_template_share_what_is_known(supabase: SupabaseCluster) -> None:
    """A second service over the same schema plans nothing; once its schema differs, it is on its own."""
    tenant = await supabase.connect()
    await tenant.script("create table public.shared (id int); grant all on public.shared to service_role")
    store = SchemaStore[Prepared]()
    one, two = make_api(supabase, store=store), make_api(supabase, store=store)
    assert (await one("GET", "/shared")).status == 200
    assert two.service.schema.known is None
    three = make_api(supabase, store=store)
    assert three.service.schema.known is one.service.schema.known
    assert (await three("GET", "/shared")).status == 200
    assert three.service.schema.loads == 0
    await tenant.script("alter table public.shared add column more int")
    assert (await three("GET", "/shared?select=more")).status == 200
    assert three.service.schema.loads == 1
    assert (await one("GET", "/shared?select=more")).status == 200
    assert one.service.schema.loads == 1
    for made in (one, two, three):
        made.pool.close()
