"""Laws of elevation: what the superuser runs says what the file said, and nothing else, whatever names it
holds.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toft.migrate.elevate import Elevation, decide_elevation
from toft.migrate.parser import CreateRole, GrantRoles, parse_statement
from toft.pg.quote import identifier, literal

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
hostile = st.sampled_from(
    [
        'a" superuser; --',
        "a'",
        "a\\",
        "postgres",
        "pg_x",
        "supabase_admin",
        "anon",
        "$$",
        "a;b",
        "Ä",
        "public",
    ]
)
passwords = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@given(names | hostile, passwords, names | hostile)
def test_create_role_is_said_again(name: str, password: str, group: str) -> None:
    """Parsing our words gives the values of the file's words."""
    statement = f"create role {identifier(name)} password {literal(password)} in role {identifier(group)}"
    decision = decide_elevation(statement, has_createrole=False)
    if isinstance(decision, Elevation):
        [ours] = decision.sql
        said = parse_statement(ours)
        assert isinstance(said, CreateRole)
        assert (said.name, said.options, said.member_of) == (name, {"password": password}, (group,))
        assert not group.startswith(("pg_execute", "pg_read_server", "pg_write", "supabase_"))


@given(st.lists(names | hostile, min_size=1, max_size=3), st.lists(names | hostile, min_size=1, max_size=3))
def test_grants_are_said_again(roles: list[str], members: list[str]) -> None:
    """Never a role of the platform, whatever stands beside it."""
    statement = f"grant {', '.join(map(identifier, roles))} to {', '.join(map(identifier, members))}"
    decision = decide_elevation(statement, has_createrole=False)
    if isinstance(decision, Elevation):
        [ours] = decision.sql
        said = parse_statement(ours)
        assert isinstance(said, GrantRoles)
        assert (said.roles, said.members) == (tuple(roles), tuple(members))
        assert not any(role.startswith("supabase_") for role in roles)


@given(
    st.text(max_size=30),
    st.sampled_from(
        ["create role", "alter role", "grant", "create publication p for all tables", "drop user"]
    ),
)
def test_any_text_is_decided(tail: str, verb: str) -> None:
    """Nothing that follows the verb makes the decision fail; no elevation says more than one statement of
    its kind.
    """
    decision = decide_elevation(f"{verb} {tail}", has_createrole=False)
    if isinstance(decision, Elevation):
        assert all(
            parse_statement(sql) is not None or "superuser" in sql or "owner to" in sql
            for sql in decision.sql
        )
