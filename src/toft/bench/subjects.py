"""Pure: what the bench of the Data API asks for, and the tables that it asks."""

from __future__ import annotations

from typing import Final

import msgspec

SCHEMA: Final = """
create table region (id int primary key, name text not null);
create table owner (id int primary key, region_id int not null references region, name text not null);
create table item (
  id int primary key, owner_id int not null references owner, name text not null, price numeric, tags jsonb,
  user_id uuid, made_at timestamptz not null default '2026-01-01');
create index on item (owner_id);
create table log (id bigint generated always as identity primary key, line text not null);
alter table region enable row level security;
alter table owner enable row level security;
alter table item enable row level security;
alter table log enable row level security;
create policy read on region for select to authenticated using (true);
create policy read on owner for select to authenticated using (true);
create policy read on item for select to authenticated
  using (user_id is null or user_id = (select auth.uid()));
create policy read on log for select to authenticated using (true);
create policy write on log for insert to authenticated with check (length(line) < 100);
insert into region select n, 'region ' || n from generate_series(1, 5) n;
insert into owner select n, 1 + n % 5, 'owner ' || n from generate_series(1, 50) n;
insert into item select n, 1 + n % 50, 'item ' || n, n * 1.5, '{"a": 1}', null
  from generate_series(1, 5000) n;
analyze;
"""

#: `{n}` in a query is another number from 1 to so many each time.
NUMBERS: Final = 5000


class Subject(msgspec.Struct, frozen=True):
    """One kind of request; how much of pgbench's rate it shall reach, and how often the usual stack's."""

    name: str
    method: str
    path: str
    query: str
    ratio_at_least: float
    body: bytes = b""
    prefer: str = ""
    times_peer: float | None = None


ROW: Final = Subject("api.row", "GET", "/item", "select=id,name,price&id=eq.{n}", 0.4, times_peer=4)
SUBJECTS: Final = (
    ROW,
    Subject("api.rows100", "GET", "/item", "select=id,name,price&limit=100", 0.5, times_peer=4),
    Subject(
        "api.insert",
        "POST",
        "/log",
        "select=id,line",
        0.4,
        b'{"line":"a line"}',
        "return=representation",
        times_peer=4,
    ),
    # No more than 1.3 times the cost of its SQL alone.
    Subject(
        "api.embed2",
        "GET",
        "/item",
        "select=id,name,owner(id,name,region(id,name))&order=id&limit=100",
        round(1 / 1.3, 3),
    ),
)

#: What an app asks for, again and again: the shapes whose plans are kept.
SHAPES: Final = (
    "/item?select=id,name,price&id=eq.{n}",
    "/item?select=id&price=gt.{n}&order=id.desc&limit=5",
    "/item?id=in.({n},7,9)&select=name",
    "/item?select=id,owner(name)&owner_id=eq.{n}&limit=3",
    "/item?or=(id.eq.{n},name.eq.x)",
    "/item?name=like.item {n}*&select=id",
    "/owner?select=*,region(*),item(id)&id=eq.{n}",
    "/owner?order=name&limit=10&offset={n}",
    "/region?select=id,name",
    "/log?select=id&id=lt.{n}&limit=1",
)
