"""After DDL has committed, the next request knows it: no notification, no wait, no restart."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable

from tests.kit.fix_rest import Api, Reply, make_api
from tests.kit.fix_supabase import SupabaseCluster
from toft.rest.prepared import Prepared
from toft.rest.schema.store import SchemaStore

#: pairs of a change and a request; `make soak-schema` has fifty times as many
PAIRS = int(os.environ.get("SCHEMA_PAIRS", "200"))
SEED = int(os.environ.get("SCHEMA_SEED", "1"))


type Step = tuple[str, str, Callable[[Reply], bool]]


class Shifting:
    """Things that change for ever, and what a request must find after each change."""

    SETUP = """
    create table public.shifting (id int primary key, v int default 0);
    create table public.child (id int primary key, parent int);
    insert into public.shifting values (1, 0);
    insert into public.child values (1, 1);
    create view public.shown as select id as n0 from public.shifting;
    create function public.told() returns int language sql stable as 'select 0';
    grant all on public.shifting, public.child, public.shown to service_role;
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.columns = ["id", "v"]
        self.number = 0
        self.kind = "int"
        self.is_related = False

    def change(self) -> Step:
        """DDL, the request that follows it, and whether its answer is that of the new schema."""
        self.number += 1
        made = self._chance.choice(
            [
                self._column,
                self._drop,
                self._rename,
                self._retype,
                self._view,
                self._function,
                self._key,
                self._table,
            ]
        )
        return made()

    def _rows(self, ddl: str) -> Step:
        wanted = set(self.columns)
        return ddl, "/shifting?limit=1", lambda reply: reply.status == 200 and set(reply.json[0]) == wanted

    def _column(self) -> Step:
        name = f"c{self.number}"
        self.columns.append(name)
        return self._rows(f"alter table public.shifting add column {name} int default {self.number}")

    def _drop(self) -> Step:
        if len(self.columns) < 3:
            return self._column()
        name = self.columns.pop(self._chance.randrange(2, len(self.columns)))
        ddl = f"alter table public.shifting drop column {name}"
        if self._chance.random() < 0.5:
            return ddl, f"/shifting?select={name}", lambda reply: reply.code == "42703"
        return self._rows(ddl)

    def _rename(self) -> Step:
        if len(self.columns) < 3:
            return self._column()
        at = self._chance.randrange(2, len(self.columns))
        old, self.columns[at] = self.columns[at], f"r{self.number}"
        return self._rows(f"alter table public.shifting rename column {old} to r{self.number}")

    def _retype(self) -> Step:
        """The same statement is prepared already, with a result of the old type."""
        self.kind = "text" if self.kind == "int" else "int"
        wanted = "0" if self.kind == "text" else 0
        ddl = (
            f"alter table public.shifting alter v drop default, alter v type {self.kind} using v::{self.kind}"
        )
        return ddl, "/shifting?select=v&id=eq.1", lambda reply: reply.json == [{"v": wanted}]

    def _view(self) -> Step:
        number = self.number
        ddl = (
            f"drop view public.shown;"
            f" create view public.shown as select id as n{number} from public.shifting;"
            "grant select on public.shown to service_role"
        )
        return ddl, "/shown", lambda reply: reply.json == [{f"n{number}": 1}]

    def _function(self) -> Step:
        number = self.number
        body = f"language sql stable as 'select {number}'"
        ddl = f"create or replace function public.told() returns int {body}"
        if self._chance.random() < 0.5:
            name = f"told{number}"
            ddl = f"create function public.{name}(a int) returns int language sql stable as 'select a'"
            return ddl, f"/rpc/{name}?a={number}", lambda reply: reply.body == b"%d" % number
        return ddl, "/rpc/told", lambda reply: reply.body == b"%d" % number

    def _key(self) -> Step:
        self.is_related = not self.is_related
        request = "/child?select=id,shifting(id)"
        if self.is_related:
            ddl = "alter table public.child add constraint up foreign key (parent) references public.shifting"
            return ddl, request, lambda reply: reply.json == [{"id": 1, "shifting": {"id": 1}}]
        return "alter table public.child drop constraint up", request, lambda reply: reply.code == "PGRST200"

    def _table(self) -> Step:
        name = f"t{self.number % 7}"
        ddl = (
            f"drop table if exists public.{name}; create table public.{name} as select {self.number} as n;"
            f"grant select on public.{name} to service_role"
        )
        number = self.number
        return ddl, f"/{name}", lambda reply: reply.json == [{"n": number}]


async def test_a_request_after_each_change_sees_it(supabase: SupabaseCluster, api: Api) -> None:
    """Columns, types, views, functions, keys and tables come and go; no answer is of the schema before."""
    tenant = await supabase.connect()
    await tenant.script(Shifting.SETUP)
    shifting = Shifting(SEED)
    for number in range(PAIRS):
        ddl, request, is_right = shifting.change()
        await tenant.script(ddl)
        reply = await api("GET", request)
        assert is_right(reply), (number, ddl, request, reply)
    print(f"{PAIRS} changes, each followed by a request: none was answered by the schema before")


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
