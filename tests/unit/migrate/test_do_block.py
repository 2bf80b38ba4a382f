"""Role statements inside DO blocks."""

from __future__ import annotations

from toft.migrate.do_block import Rewritten, rewrite_do_block
from toft.migrate.elevate import Elevation, decide_elevation


def rewrite(text: str) -> Rewritten | None:
    return rewrite_do_block(text, lambda sql: decide_elevation(sql, has_createrole=False), "call({})".format)


def test_static_statements_are_replaced() -> None:
    """Each by a call, line for line; the rest of the block is untouched."""
    text = """\
-- roles
DO LANGUAGE plpgsql $do$
<<top>>
declare note text := 'create role fake;';
begin
  if true then create role a
    nologin; elsif false then
    -- create role b;
    drop role if exists b;
  else grant a to postgres; end if;
  for i in 1..2 loop comment on role a is 'x;y'; end loop;
  perform 'create role c;';
exception when duplicate_object then alter role a login;
end $do$"""
    found = rewrite(text)
    assert found is not None
    assert found.text.split("\n")[5:] == [
        "  if true then perform call(0)",
        "; elsif false then",
        "    -- create role b;",
        "    perform call(1);",
        "  else perform call(2); end if;",
        "  for i in 1..2 loop perform call(3); end loop;",
        "  perform 'create role c;';",
        "exception when duplicate_object then perform call(4);",
        "end $do$",
    ]
    assert [elevation.sql[0] for elevation in found.elevations] == [
        'create role "a" nologin',
        'drop role if exists "b"',
        'grant "a" to "postgres"',
        "comment on role \"a\" is 'x;y'",
        'alter role "a" login',
    ]
    assert found.refusal is None


def test_execute_with_a_literal() -> None:
    """What EXECUTE runs is known when it is one literal, quoted either way."""
    found = rewrite("do $$ begin execute 'create role a password ''x'''; execute $q$create role b$q$; end $$")
    assert found is not None
    assert [elevation.sql for elevation in found.elevations] == [
        ("create role \"a\" password 'x'",),
        ('create role "b"',),
    ]
    for dynamic in (
        "'create role ' || 'a'",
        "format('create role %I', 'a')",
        "'create role a' using 1",
        "stmt",
    ):
        assert rewrite(f"do $$ begin execute {dynamic}; end $$") is None


def test_refusals_are_remembered() -> None:
    """The statement stays as it is, for the server to refuse, and the reason is kept for the advice."""
    text = "do $$ begin create role a superuser; create role b; end $$"
    found = rewrite(text)
    assert found is not None
    assert found.text == "do $$ begin create role a superuser; perform call(0); end $$"
    assert [type(elevation) for elevation in found.elevations] == [Elevation]
    assert found.refusal is not None
    assert "SUPERUSER" in found.refusal.reason


def test_nothing_to_do() -> None:
    """Blocks without such statements, quoted otherwise, and other statements."""
    for text in (
        "do $$ begin perform 1; end $$",
        "do $$ begin grant select on t to a; end $$",
        "do 'begin create role a; end'",
        "create function f() returns void language plpgsql as $$ begin create role a; end $$",
        "double $$ create role a; $$",
        "do $$ begin create role a",
        "do",
        "",
    ):
        assert rewrite(text) is None
