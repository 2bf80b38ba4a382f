"""`toft db test-migration`, `advisors` and `diff`, as a user types them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kit.leased import query
from tests.kit.real_cli import RealCli

BASE = {
    "1_shop.sql": """\
create table public.shop (id bigint generated always as identity primary key, name text not null, note text);
alter table public.shop enable row level security;
create policy "own" on public.shop for select to authenticated using (name = (select auth.email()));
""",
    "supabase/seed.sql": "insert into shop (name) select 'shop ' || i from generate_series(1, 50) as i;",
}
CHANGE = """\
-- a comment with ä before everything
alter table public.shop add column rank float not null default random();
create index shop_name on public.shop (name);

update public.shop set note = 'x' where id <= 10;
create table public.leak (id bigint primary key, api_key text, shop bigint references public.shop);
drop policy "own" on public.shop;
"""


def trial(cli: RealCli, *words: str, status: int = 0) -> Any:
    done = cli("db", "test-migration", *words, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


async def test_what_a_migration_does(cli: RealCli) -> None:
    """Changes, locks, rewrites, rows, exposure and findings are those of the file, each with its line."""
    cli.write({**BASE, "2_change.sql": CHANGE})
    path = "supabase/migrations/2_change.sql"
    report = trial(cli, path)
    assert (report["result"], report["failure"]) == ("applied", None)
    assert [(file["path"], file["status"], file["transaction"]) for file in report["files"]] == [
        (path, "applied", "one")
    ]
    changed = {(change["op"], change["kind"], change["identity"]) for change in report["schema_diff"]}
    assert {
        ("create", "column", "public.shop.rank"),
        ("create", "index", "public.shop.shop_name"),
        ("create", "table", "public.leak"),
        ("create", "constraint", "public.leak.leak_shop_fkey"),
        ("drop", "policy", "public.shop.own"),
    } <= changed
    locks = {(lock["relation"], lock["mode"], lock["line"], lock["had_rows"]) for lock in report["locks"]}
    assert ("public.shop", "AccessExclusiveLock", 2, True) in locks
    assert ("public.shop", "ShareRowExclusiveLock", 6, True) in locks
    assert [(each["relation"], each["line"]) for each in report["rewrites"]] == [("public.shop", 2)]
    [shop] = [rows for rows in report["data"] if rows["relation"] == "public.shop"]
    assert (shop["updated"], shop["rows_before"], shop["rows_after"], shop["line"]) == (10, 50, 50, 5)
    exposed = {each["relation"]: each for each in report["exposure"]}
    assert exposed["public.leak"]["roles"]["anon"]["select"] == "all"
    assert exposed["public.shop"]["roles"]["authenticated"]["select"] == "none"
    assert exposed["public.shop"]["changed"]
    lints = {(lint["rule"], lint["line"]) for lint in report["lints"] if lint["new"]}
    assert {
        ("volatile-default", 2),
        ("index-not-concurrent", 3),
        ("lock-timeout-missing", 2),
        ("data-and-ddl-mixed", 5),
        ("rls_disabled_in_public", None),
        ("sensitive_columns_exposed", None),
        ("unindexed_foreign_keys", None),
        ("rls_enabled_no_policy", None),
    } <= lints
    assert report["replay"]["from_zero"] == "ok"
    assert report["replay"]["second_run"].startswith("fails: supabase/migrations/2_change.sql:2")
    assert cli.json("lease", "list") == {"leases": []}, "what it was tried on is gone"


async def test_on_the_data_of_a_lease(cli: RealCli) -> None:
    """With --data the files meet the rows of a lease, which itself is not touched."""
    cli.write(BASE)
    lease = cli.json("lease", "create")
    await query(lease, "insert into shop (name, note) values ('long', repeat('long ', 20))")
    cli.write({"2_shorter.sql": "alter table public.shop alter column note type varchar(20);"})
    report = trial(cli, "--data", lease["id"], status=1)
    failure = report["failure"]
    assert (failure["file"], failure["line"]) == ("supabase/migrations/2_shorter.sql", 1)
    assert failure["sqlstate"] == "22001"
    assert report["replay"]["from_zero"] is None
    assert await query(lease, "select count(*) from supabase_migrations.schema_migrations") == 1
    await query(lease, "delete from shop where length(note) > 20")
    assert trial(cli, "--data", lease["id"])["result"] == "applied"


async def test_its_forms_and_statuses(cli: RealCli) -> None:
    """Text, Markdown and JSON tell the same; `--fail-on` decides about the exit status."""
    cli.write({**BASE, "2_change.sql": CHANGE})
    path = "supabase/migrations/2_change.sql"
    text = cli("db", "test-migration", path)
    assert text.returncode == 0
    for part in (
        "applied on Postgres",
        "+ table public.leak",
        f"{path}:3 index-not-concurrent",
        "50 → 50  10 updated",
    ):
        assert part in text.stdout, part
    assert "safe" not in text.stdout.replace("safety", "")
    markdown = cli("db", "test-migration", path, "--format", "markdown", "--fail-on", "error")
    assert markdown.returncode == 1
    assert markdown.stdout.startswith("### Migration test: ✅ applied")
    assert f"| warn | `{path}:3` |" in markdown.stdout
    assert "findings of level error or above" in markdown.stderr
    assert cli("db", "test-migration", "--fail-on", "loud").returncode == 2
    assert cli("db", "test-migration", "x.sql").returncode == 2


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("alter table shop add constraint short check (length(name) < 99);", {"check-validates"}),
        ("alter table shop add constraint short check (length(name) < 99) not valid;\n"
         "alter table shop validate constraint short;", {"validate-same-file"}),
        ("alter table shop alter column note set not null;", {"set-not-null"}),
        ("alter table shop add column owner uuid not null;", {"required-column"}),
        ("alter table shop rename column note to remark;", {"rename-column"}),
        ("alter table shop add unique (name);", {"unique-builds-index"}),
        ("drop table shop;", {"drop-table"}),
        ("truncate shop;", {"truncate"}),
        ("delete from shop;", {"delete-without-where"}),
        ("update shop set note = '';", {"update-without-where"}),
        ("create index concurrently a on shop (name);\nselect 1;",
         {"concurrent-in-company", "not-idempotent"}),
        ("create type mood as enum ('a');\nalter type mood add value 'b';\nselect 'b'::mood;",
         {"enum-in-use"}),
        ("create table t (id int primary key, at timestamp, c char(3), j json);",
         {"int-key", "timestamp-without-zone", "char-n", "json-not-jsonb"}),
        ("create table auth.mine (id int);", {"managed-schema"}),
        ("\\restrict x\nselect 1;", {"psql-command"}),
        ("begin;\nselect 1;", {"open-transaction"}),
        ("create table t (id bigint primary key, n int);\ncreate index on t (n);\ndelete from t;\n"
         "alter table t add column x float default random();", set[str]()),
    ],
)  # fmt: skip
def test_rules_by_text(text: str, rules: set[str]) -> None:
    """Each rule finds its case, and nothing is found about tables that the file itself makes."""
    from toft.database.safety import look_at
    from toft.migrate.project import read_file

    found = {finding.rule for finding in look_at([read_file("2_x.sql", text.encode())], ["public.shop"])}
    assert rules <= found
    assert rules or not found - {"lock-timeout-missing"}


async def test_advisors(cli: RealCli) -> None:
    """They find what is there, and `--fail-on` makes it a refusal."""
    cli.write({**BASE, "2_change.sql": CHANGE})
    cli.json("lease", "create")
    found = {(each["rule"], each["object"]) for each in cli.json("db", "advisors")["findings"]}
    assert {("rls_disabled_in_public", "public.leak"), ("rls_enabled_no_policy", "public.shop")} <= found
    assert cli("db", "advisors", "--fail-on", "error").returncode == 1


async def test_diff_leads_from_one_to_the_other(cli: RealCli) -> None:
    """The SQL of a diff, applied to the first, leaves no difference to the second."""
    cli.write(BASE)
    first = cli.json("lease", "create", "--label", "first")
    cli.write(
        {
            "2_more.sql": """\
create type public.mood as enum ('sad', 'ok', 'happy');
create table public.person (
  id uuid primary key default gen_random_uuid(), name text not null, mood public.mood default 'ok',
  shop bigint references public.shop, born date check (born > '1900-01-01'), unique (name));
create index person_mood on public.person (mood) where mood is not null;
alter table public.person enable row level security;
create policy "see" on public.person for select to anon, authenticated using (mood = 'happy');
create function public.hello(who public.person) returns text language sql
  as $$ select 'hello ' || who.name $$;
create view public.happy with (security_invoker = on) as
  select name from public.person where mood = 'happy';
create function public.touch() returns trigger language plpgsql as $$ begin return new; end $$;
create trigger touched before update on public.person for each row execute function public.touch();
comment on column public.person.name is 'as it''s called';
alter table public.shop alter column name drop not null,
  alter column name set default '-', drop column note;
create sequence public.number start 5;
revoke truncate on public.shop from anon;
"""
        }
    )
    cli.json("lease", "create", "--label", "second")
    sql = cli("db", "diff", "first", "second").stdout
    assert "create policy" in sql
    for statement in (sql,):
        await query_script(first, statement)
    left = cli.json("db", "diff", "first", "second")["changes"]
    assert [change for change in left if change["kind"] != "column" or "position" not in str(change)] == []
    assert cli("db", "diff", "second", "second").stdout == ""


async def query_script(lease: dict[str, Any], sql: str) -> None:
    from tests.kit.leased import session

    async with session(lease) as connection:
        await connection.execute(sql)
