"""Realistic projects apply fully, and what they build works for the people that they build it for."""

from __future__ import annotations

import json

import pytest

from tests.kit.fix_supabase import SupabaseCluster
from tests.kit.projects import PROJECTS, apply_to, read_folder
from toft.migrate.project import read_project
from toft.migrate.run import Applied
from toft.pg.connection import Connection
from toft.pg.sqlstate import PostgresError

ADA = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
BEN = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"


async def build(cluster: SupabaseCluster, name: str) -> Applied:
    project = read_project(read_folder(PROJECTS / name))
    applied = await apply_to(cluster, project)
    assert applied.migrations == tuple(migration.path for migration in project.migrations)
    assert applied.seeds == tuple(seed.path for seed in project.seeds)
    assert not [notice for notice in applied.notices if notice.level == "warning"]
    return applied


async def as_caller(cluster: SupabaseCluster, sql: str, user: str | None = None) -> list[list[str | None]]:
    """What the Data API would answer to a person, or to nobody in particular."""
    session: Connection = await cluster.connect("authenticator")
    role = "anon" if user is None else "authenticated"
    claims = json.dumps({"role": role, "sub": user} if user else {"role": role})
    await session.script("begin")
    try:
        await session.query(
            "select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)", role, claims
        )
        rows = await session.query(sql)
        await session.script("commit")
    finally:
        session.close()
    return rows


async def refusal(cluster: SupabaseCluster, sql: str, user: str | None = None) -> str:
    with pytest.raises(PostgresError) as caught:
        await as_caller(cluster, sql, user)
    return caught.value.sqlstate


async def test_library_dump(supabase: SupabaseCluster) -> None:
    """A schema as `supabase db pull` writes it, one change by hand, and a seed that finds the tables
    again.
    """
    await build(supabase, "library_dump")
    reader = "11111111-1111-4111-8111-111111111111"
    assert await as_caller(supabase, "select title from books order by id") == [
        ['The Wind; and the "Rain"'],
        ["A Quiet Mill"],
    ]
    assert await as_caller(supabase, "select count(*) from loans", reader) == [["1"]]
    assert await as_caller(supabase, "select count(*) from loans", ADA) == [["0"]]
    assert await as_caller(supabase, "select days_late from overdue_loans()", reader) == [["12"]]
    assert await as_caller(
        supabase, "select title from books where title operator(extensions.%) 'quiet mil'"
    ) == [["A Quiet Mill"]]
    session = await supabase.connect()
    published = await session.query(
        "select tablename from pg_publication_tables where pubname = 'supabase_realtime' order by 1"
    )
    assert published == [["loans"], ["reservations"]]


async def test_team_workspaces(supabase: SupabaseCluster) -> None:
    """Sign-ups get a profile, teams see themselves only, the hook is Auth's, a role of its own reads the
    audit.
    """
    applied = await build(supabase, "team_workspaces")
    assert bool(applied.elevated) == (supabase.major < 16)
    assert await as_caller(supabase, "select display_name from profiles order by 1", ADA) == [
        ["Ada"],
        ["Ben"],
    ]
    assert await as_caller(supabase, "select slug from teams", ADA) == [["bridge-tunnel"]]
    assert await as_caller(supabase, "select slug from teams", BEN) == []
    assert await as_caller(supabase, "select name from create_team('Ben''s team')", BEN) == [["Ben's team"]]
    assert await as_caller(supabase, "select name from teams", BEN) == [["Ben's team"]]
    assert await refusal(supabase, "select create_team('x')") == "42501"
    [[token]] = await as_caller(
        supabase, "insert into invitations (team_id, email) select id, 'B@x' from teams returning token", ADA
    )
    assert await as_caller(supabase, f"select count(accept_invitation('{token}'))", BEN) == [["1"]]
    assert await refusal(supabase, f"select accept_invitation('{token}')", BEN) == "P0002"
    auth = await supabase.connect("supabase_auth_admin")
    [[event]] = await auth.query(
        f"""select public.custom_access_token('{{"user_id": "{BEN}", "claims": {{"app_metadata": {{}}}}}}')"""
    )
    assert sorted(json.loads(str(event))["claims"]["app_metadata"]["teams"].values()) == ["member", "owner"]
    await auth.query("insert into auth.users (id, email) values (gen_random_uuid(), 'new@example.org')")
    assert await as_caller(supabase, "select count(*) from profiles where display_name = 'new'", ADA) == [
        ["1"]
    ]
    reader = await supabase.connect("authenticator")
    await reader.script("set role reporting")
    assert int(str((await reader.query("select count(*) from private.audit"))[0][0])) >= 4


async def test_photo_albums(supabase: SupabaseCluster) -> None:
    """Policies on storage.objects, buckets from SQL and from config.toml, tables that are exposed by hand
    only.
    """
    await build(supabase, "photo_albums")
    session = await supabase.connect()
    buckets = await session.query(
        "select id, public::text, file_size_limit::text from storage.buckets order by id"
    )
    assert buckets == [
        ["avatars", "true", "1048576"],
        ["exports", "false", None],
        ["photos", "false", "10485760"],
    ]
    await session.query(f"insert into auth.users (id, email) values ('{ADA}', 'ada@example.org')")
    [[album]] = await as_caller(
        supabase, "insert into albums (title, is_public) values ('Sea', true) returning id", ADA
    )
    put = (
        "insert into storage.objects (bucket_id, name, owner_id)"
        " values ('photos', '{}/{}/1.jpg', '{}') returning name"
    )
    await as_caller(supabase, put.format(ADA, album, ADA), ADA)
    assert await refusal(supabase, put.format(ADA, album, BEN), BEN) == "42501"
    assert await as_caller(supabase, "select count(*) from storage.objects") == [["1"]]
    assert await refusal(supabase, "select * from orphans", ADA) == "42501"
    await session.script("create table later ()")
    assert await refusal(supabase, "select * from later", ADA) == "42501"


async def test_help_search(supabase: SupabaseCluster) -> None:
    """Vectors, full text, a secret of the vault; for majors that have pgvector."""
    session = await supabase.connect()
    if not await session.query("select from pg_available_extensions where name = 'vector'"):
        pytest.skip(f"no pgvector for Postgres {supabase.major}")
    await build(supabase, "help_search")
    assert await as_caller(supabase, "select title from match_sections('[0.9,0.1,0]')") == [
        ["How to reset a password"]
    ]
    assert await as_caller(supabase, "select slug from search_articles('invoïces')") == [["invoices"]]
    assert await session.query("select embedding_key_is_set()") == [["t"]]
    assert await (await supabase.connect()).query("show maintenance_work_mem") == [["32MB"]]
    assert await refusal(supabase, "select embedding_key_is_set()", ADA) == "42501"


async def test_corner_shop(supabase: SupabaseCluster) -> None:
    """Functions of each kind, partitions, generated columns, a materialized view, jobs that are written
    down.
    """
    await build(supabase, "corner_shop")
    order = "select api.place_order(array[row('TEA-0001', 2), row('MUG-0002', 1)]::api.order_item[])"
    [[number]] = await as_caller(supabase, order, ADA)
    assert await as_caller(supabase, f"select total from orders where id = {number}", ADA) == [["21.00"]]
    assert await as_caller(supabase, "select count(*) from orders", BEN) == [["0"]]
    assert await refusal(supabase, order.replace("2)", "99)", 1), ADA) == "23514"
    assert await refusal(supabase, "select api.place_order('{}')", ADA) == "22023"
    assert await as_caller(
        supabase, "select api.price_of('TEA-0001', '2020-01-05'), api.price_of('TEA-0001')"
    ) == [["3.95", "4.50"]]
    assert await as_caller(supabase, "select sku from api.search('blue')") == [["MUG-0002"]]
    assert await as_caller(supabase, "select sku, place from api.bestsellers order by 2", ADA) == [
        ["TEA-0001", "1"],
        ["MUG-0002", "2"],
    ]
    session = await supabase.connect()
    await session.script("call refresh_reports()")
    assert await session.query("select orders from sales_by_day") == [["1"]]
    assert await session.query("select jobname from cron.job order by 1") == [
        ["nightly reports"],
        ["tell the warehouse"],
    ]


async def test_parcel_tracking(supabase: SupabaseCluster) -> None:
    """Years of enum changes, concurrent indexes, own transactions and the marker come out right."""
    await build(supabase, "parcel_tracking")
    assert await as_caller(supabase, "select code, state from parcels order by code") == [
        ["AB1", "registered"],
        ["AB2", "in_customs"],
    ]
    assert await as_caller(
        supabase, "select string_agg(state::text, ' ' order by id) from parcel_events where parcel_id = 2"
    ) == [["registered sent in_customs"]]
    session = await supabase.connect()
    values = await session.query(
        "select enum_range(null::parcel_state)::text, current_setting('app.settings.jwt_exp')"
    )
    assert values == [["{registered,sent,in_customs,delivered}", "7200"]]
    assert await session.query("select indexrelid::regclass::text from pg_index where not indisvalid") == []
    assert await session.query(
        "select setconfig::text from pg_db_role_setting where setrole = 'authenticated'::regrole"
    ) == [["{statement_timeout=15s}"]]
