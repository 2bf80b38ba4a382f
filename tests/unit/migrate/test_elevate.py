"""Which statements the superuser runs, in which words, and which it does not."""

from __future__ import annotations

import pytest

from toft.migrate.elevate import Elevation, Refusal, custom_parameters, decide_elevation


def sql(statement: str, has_createrole: bool = False) -> list[str] | str | None:
    """What would be run; the reason of a refusal; or None."""
    match decide_elevation(statement, has_createrole=has_createrole):
        case Elevation() as elevation:
            return list(elevation.sql)
        case Refusal(reason):
            return reason
        case None:
            return None


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("create role a", 'create role "a"'),
        (
            "-- x\n/* y */ CREATE ROLE \"A b\" LOGIN PASSWORD 'it''s' INHERIT NOCREATEDB",
            "create role \"A b\" login password 'it''s' inherit nocreatedb",
        ),
        (
            "create user u with password null valid until 'infinity' connection limit -1",
            "create user \"u\" password null valid until 'infinity' connection limit -1",
        ),
        ("create group g role a, current_user admin b", 'create group "g" role "a", "postgres" admin "b"'),
        ("create role a in role anon, mine in group more", 'create role "a" in role "anon", "mine", "more"'),
        (
            "create role a nosuperuser nobypassrls noreplication nocreaterole",
            'create role "a" nosuperuser nobypassrls noreplication nocreaterole',
        ),
        ("create role a password E'x\\'y\\\\z'", "create role \"a\" password  E'x''y\\\\z'"),
        ("create role a sysid 7", 'create role "a"'),
        ("create role anon", 'create role "anon"'),
        ("alter role a nologin", 'alter role "a" nologin'),
        ("alter user a with encrypted password 'x'", "alter role \"a\" password 'x'"),
        (
            "alter role a set search_path = public, \"X\", 'y z'",
            "alter role \"a\" set \"search_path\" to 'public', 'X', 'y z'",
        ),
        (
            "alter role a in database postgres set work_mem = 1024",
            'alter role "a" in database "postgres" set "work_mem" to \'1024\'',
        ),
        (
            "alter role anon set statement_timeout to '3s'",
            'alter role "anon" set "statement_timeout" to \'3s\'',
        ),
        (
            "alter role authenticator set pgrst.db_schemas = 'a,b'",
            'alter role "authenticator" set "pgrst"."db_schemas" to \'a,b\'',
        ),
        ("alter role a set jit = off", 'alter role "a" set "jit" to \'off\''),
        ("alter role a set x.y = 1.5", 'alter role "a" set "x"."y" to \'1.5\''),
        ("alter role a reset work_mem", 'alter role "a" reset "work_mem"'),
        ("alter role a set work_mem to default", 'alter role "a" reset "work_mem"'),
        ("alter role a reset all", 'alter role "a" reset all'),
        ("alter role a rename to b", 'alter role "a" rename to "b"'),
        ("drop role if exists a, b", 'drop role if exists "a", "b"'),
        ("drop user a", 'drop role "a"'),
        ("comment on role a is 'x'", "comment on role \"a\" is 'x'"),
        ("grant a to b", 'grant "a" to "b"'),
        (
            "grant a, anon to authenticator, current_user with admin option",
            "a, anon cannot be granted WITH ADMIN OPTION",
        ),
        ("grant a to b, session_user with admin option", 'grant "a" to "b", "postgres" with admin option'),
        ("grant authenticated to a", 'grant "authenticated" to "a"'),
        ("revoke a from b cascade", 'revoke "a" from "b" cascade'),
        ("revoke admin option for a from b", 'revoke admin option for "a" from "b"'),
        ("alter group a add user b, c", 'grant "a" to "b", "c"'),
        ("alter group a drop user b", 'revoke "a" from "b"'),
    ],
)
def test_roles(statement: str, expected: str) -> None:
    """In our own words, every name quoted; the current user is `postgres`."""
    said = sql(statement)
    assert said == ([expected] if not expected.endswith("OPTION") else expected)
    assert sql(statement, has_createrole=True) is None


@pytest.mark.parametrize(
    "statement",
    [
        "create role a superuser",
        "create role a replication",
        "create role a bypassrls",
        "create role a createrole",
        "create role supabase_x",
        "create role pg_x",
        "create role toft_x",
        "create role a in role supabase_admin",
        "create role a in role pg_write_server_files",
        "create role a in role authenticator",
        "create role a in role current_user",
        "alter role a superuser",
        "alter role anon nologin",
        "alter role authenticator password 'x'",
        "alter role supabase_admin set search_path = x",
        "alter role supabase_auth_admin set search_path = x",
        "alter role anon reset all",
        "alter role a rename to supabase_b",
        "alter role anon rename to b",
        "drop role a, anon",
        "drop role postgres",
        "drop role current_user",
        "comment on role postgres is 'x'",
        "grant pg_execute_server_program to postgres",
        "grant pg_write_all_data to a",
        "grant supabase_admin to a",
        "grant authenticator to a",
        "grant anon to a with admin option",
        "grant a, supabase_storage_admin to b",
        "revoke anon from authenticator",
        "revoke supabase_auth_admin from postgres",
        "alter group supabase_admin add user postgres",
        "grant a to b with inherit true",
    ],
)
def test_refused_roles(statement: str) -> None:
    """Attributes that reach beyond the database, and whatever concerns the platform's own roles."""
    assert isinstance(decide_elevation(statement, has_createrole=False), Refusal)


@pytest.mark.parametrize(
    "statement",
    [
        "alter role postgres password 'x'",
        "alter role current_user password 'x'",
        "alter role postgres set search_path = x",
        "alter user postgres reset all",
        "alter role all set work_mem = '1MB'",
        "grant select on t to a",
        "revoke all on schema public from anon",
        "grant a to b granted by c",
        "create user mapping for a server s",
        "alter default privileges grant select on tables to a",
        "create role a; create role b",
        "create role",
        "create role a login superuser; --",
        "set role a",
        "select 'create role a'",
        "drop owned by a",
        "alter role a set work_mem from current",
        "",
        "\ud800",
    ],
)
def test_left_to_the_server(statement: str) -> None:
    """What `postgres` may do by itself, what is no such statement, and what is not understood."""
    decision = decide_elevation(statement, has_createrole=False)
    assert decision is None or isinstance(decision, Refusal)
    assert not isinstance(decision, Elevation)


def test_publications() -> None:
    """Of all tables and of whole schemas, on every major; postgres owns them afterwards and is no
    superuser.
    """
    hand_over = [
        'alter role "postgres" superuser',
        'alter publication "p" owner to "postgres"',
        'alter role "postgres" nosuperuser',
    ]
    assert sql("create publication p for all tables", True) == [
        'create publication "p" for all tables',
        *hand_over,
    ]
    assert sql(
        "create publication p for tables in schema a, \"B\" with (publish = 'insert', x = true, y)", True
    ) == [
        'create publication "p" for tables in schema "a", "B"'
        " with (\"publish\" = 'insert', \"x\" = 'true', \"y\" = 'true')",
        *hand_over,
    ]
    assert sql("alter publication p set tables in schema a", True) == [
        'alter publication "p" set tables in schema "a"'
    ]
    for ordinary in (
        "create publication p",
        "create publication p for table a",
        "alter publication p add table a",
        "create publication p for tables in schema current_schema",
        "create publication p for table a, tables in schema b",
    ):
        assert sql(ordinary, True) is None


def test_custom_parameters() -> None:
    """`app.*` names that databases and roles are given; nothing else may be granted by asking for it."""
    assert custom_parameters(
        [
            "alter database postgres set \"app.settings.jwt_secret\" to 'x'",
            "-- x\nALTER DATABASE postgres SET App.url = 'y'",
            "alter role postgres set app.a = 1",
            "alter role anon in database postgres set app.b = 1",
            "alter role postgres set log_statement = 'all'",
            "alter database postgres set plperl.on_init = 'x'",
            "alter database postgres set \"app.x y\" to 'x'",
            "alter database postgres set search_path = app",
            "select set_config('app.c', '', false)",
        ]
    ) == {"app.settings.jwt_secret": 0, "app.url": 1, "app.a": 2, "app.b": 3}
