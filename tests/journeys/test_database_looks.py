"""`toft db check-query`, `db types` and `inspect`, as a user types them."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from tests.kit.leased import session
from tests.kit.real_cli import RealCli

SHOP = """\
create type public.mood as enum ('sad', 'ok');
create table public.shop (id bigint generated always as identity primary key, owner uuid not null,
  title text, mood public.mood default 'ok', tags text[], price numeric, "odd name" jsonb);
alter table public.shop enable row level security;
create policy own on public.shop for select to authenticated using (owner = (select auth.uid()));
create table public.line (shop bigint references public.shop, at timestamptz not null default now());
create view public.titles as select id, title from public.shop;
create function public.total(of_shop bigint default 1) returns numeric language sql as 'select 1.0';
create schema hidden;
create table hidden.secret (id int);
"""


@pytest.fixture
def shop(cli: RealCli) -> RealCli:
    """A project with one lease."""
    cli.write({"1_shop.sql": SHOP})
    cli.json("lease", "create")
    return cli


def check(cli: RealCli, sql: str, *words: str, status: int = 0) -> Any:
    done = cli("db", "check-query", *words, sql, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def test_what_a_query_takes_and_gives(shop: RealCli) -> None:
    """Parameters and columns have their types, the plan its relations, and each role its outcome."""
    report = check(shop, "select id, title from shop where owner = $1 and price > $2")
    assert (report["ok"], report["statement"], report["error"]) == (True, "select", None)
    assert [each["type"] for each in report["parameters"]] == ["uuid", "numeric"]
    assert report["columns"] == [{"name": "id", "type": "int8"}, {"name": "title", "type": "text"}]
    assert report["relations"] == [{"name": "public.shop"}]
    assert report["plan"]["seq_scans"] == ["public.shop"]
    outcomes = {role["role"]: role["outcome"] for role in report["roles"]}
    assert outcomes == {"anon": "no_rows", "authenticated": "filtered", "service_role": "all"}
    [authenticated] = [role for role in report["roles"] if role["role"] == "authenticated"]
    assert "owner = " in authenticated["filter"]
    denied = check(shop, "select * from hidden.secret")["roles"][0]
    assert (denied["outcome"], denied["missing"]) == ("denied", ["schema hidden"])


@pytest.mark.parametrize(
    ("sql", "sqlstate", "token", "suggestion"),
    [
        ("select id,\n  tittle from shop", "42703", "tittle", "public.shop.title"),
        ("select * from shopp", "42P01", "shopp", "public.shop"),
        ("select totall(1)", "42883", "totall", "public.total(of_shop bigint)"),
        ("selec 1", "42601", "selec", None),
        ("select 1; select 2", "42601", None, None),
    ],
)
def test_what_is_wrong_with_a_query(
    shop: RealCli, sql: str, sqlstate: str, token: str | None, suggestion: str | None
) -> None:
    """The fault has its place, and a name that is near."""
    error = check(shop, sql, status=1)["error"]
    assert (error["sqlstate"], error["token"]) == (sqlstate, token)
    assert error["suggestions"][:1] == ([suggestion] if suggestion else [])
    if token and "\n" in sql:
        assert (error["line"], error["column"]) == (2, 3)


async def test_nothing_is_executed(shop: RealCli) -> None:
    """Neither a write nor a function with effects leaves anything; a whole table's DELETE is warned of."""
    [lease] = shop.json("lease", "list")["leases"]
    whole = shop.json("lease", "show", lease["id"])
    async with session(whole) as connection:
        await connection.execute("insert into shop (owner) values (gen_random_uuid())")
        report = check(shop, "delete from shop", "--writes")
        assert [warning["rule"] for warning in report["warnings"]] == ["delete-without-where"]
        check(shop, "insert into shop (owner) values (gen_random_uuid()) returning id", "--writes")
        assert await connection.fetchval("select count(*) from shop") == 1
    text = shop("db", "check-query", "select id from shop").stdout
    assert text.startswith("select → id int8\n")


def test_types_for_programs(shop: RealCli) -> None:
    """TypeScript has tables, views, functions, enums and relationships; Python text is Python."""
    text = shop("db", "types").stdout
    for part in (
        'mood: Database["public"]["Enums"]["mood"] | null;',
        "id?: never;",
        "tags: string[] | null;",
        '"odd name": Json | null;',
        'referencedRelation: "shop"',
        "total: { Args: { of_shop?: number }; Returns: number };",
        'mood: "sad" | "ok";',
    ):
        assert part in text, part
    assert "secret" not in text
    assert "secret" in shop("db", "types", "--schemas", "hidden").stdout
    python = shop("db", "types", "--lang", "python").stdout
    names: dict[str, Any] = {}
    exec(compile(ast.parse(python), "types.py", "exec"), names)
    assert names["Shop"].__annotations__.keys() >= {"id", "owner", "odd name"}
    assert shop.refusal("db", "types", "--lang", "cobol")["code"] == "TOFT-USAGE"


@pytest.mark.parametrize(
    "subject",
    ["locks", "connections", "statements", "tables", "indexes", "cache", "transactions", "storage"],
)
async def test_inspect(shop: RealCli, subject: str) -> None:
    """Each subject is answered in both forms; who waits for whom is seen."""
    [lease] = shop.json("lease", "list")["leases"]
    whole = shop.json("lease", "show", lease["id"])
    async with session(whole) as connection, connection.transaction():
        if subject == "locks":
            await connection.execute("lock table shop")
        rows = shop.json("inspect", subject)[subject]
        assert shop("inspect", subject).returncode == 0
        if subject == "tables":
            await connection.execute("lock table shop")
            assert "inspect locks" in shop.refusal("inspect", subject)["remedy"]
    if subject == "locks":
        assert ("shop", "AccessExclusiveLock") in {(row["relation"], row["mode"]) for row in rows}
    elif subject == "tables":
        assert "public.shop" in {row["table"] for row in rows}
