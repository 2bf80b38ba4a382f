"""The list of scripts that make a fresh database."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from toft.engine.bootstrap import REVOKE_AUTO_EXPOSE, Script, load_bootstrap, stand_ins

MAJORS = (15, 16, 17, 18)
SERVICE = Script(name="auth/tables.sql", role="supabase_auth_admin", sql="select 1")


@pytest.mark.parametrize("major", MAJORS)
def test_services_come_between_schemas_and_triggers(major: int) -> None:
    """Their schemas exist by then, and what they make is not counted as a change of the schema."""
    names = [script.name for script in load_bootstrap(major, [SERVICE]).scripts]
    assert names.index("schemas") < names.index(SERVICE.name) < names.index("triggers") == len(names) - 1


@pytest.mark.parametrize("major", MAJORS)
def test_versions_are_digests(major: int) -> None:
    """The same input has the same version; another major, script, role or order has another."""
    plain = load_bootstrap(major)
    assert plain == load_bootstrap(major)
    other = Script(name=SERVICE.name, role="postgres", sql=SERVICE.sql)
    versions = {
        plain.version,
        load_bootstrap(major, [SERVICE]).version,
        load_bootstrap(major, [other]).version,
        load_bootstrap(major, [SERVICE, other]).version,
        load_bootstrap(major, [other, SERVICE]).version,
        *(load_bootstrap(another).version for another in MAJORS if another != major),
    }
    assert len(versions) == 8


def test_the_split_between_15_and_16() -> None:
    """Each side has its own answer to CREATEROLE and to memberships."""
    before = {script.name for script in load_bootstrap(15).scripts}
    since = {script.name for script in load_bootstrap(16).scripts}
    assert before - since == {"roles_before_16", "extensions_before_16", "members_before_16"}
    assert since - before == {"roles_from_16", "members_from_16"}


def test_every_script_is_used() -> None:
    """No file lies in the folder unread."""
    files = {entry.name for entry in (resources.files("toft.engine") / "bootstrap").iterdir()}
    used = {f"{script.name}.sql" for major in MAJORS for script in load_bootstrap(major).scripts}
    assert files == used


def test_scripts_can_run_as_one_simple_query() -> None:
    """No transaction commands and nothing that refuses to run inside of one."""
    command = re.compile(r"^(begin|commit|rollback|create database|vacuum)\b", re.M | re.I)
    for major in MAJORS:
        for script in load_bootstrap(major).scripts:
            bodies_left_out = re.sub(r"\$\$.*?\$\$", "", script.sql, flags=re.S)
            assert not command.search(bodies_left_out), script.name


def test_functions_of_ours_name_their_search_path() -> None:
    """An unnamed one, or an empty one (which has pg_temp first), lets a tenant's names into our functions."""
    for major in MAJORS:
        for script in load_bootstrap(major).scripts:
            for head in re.findall(
                r"create function .*?(?:\bas \$\$|\breturn\b|\bbegin atomic\b)", script.sql, re.S
            ):
                if head.endswith("$$"):
                    assert "set search_path = pg_catalog, pg_temp" in head, head


@pytest.mark.parametrize("name", sorted(stand_ins()))
def test_a_stand_in_is_complete_and_honest(name: str) -> None:
    """Its control file lets postgres create it, says that it is a stand-in, and its script exists."""
    folder = resources.files("toft.engine") / "extensions"
    control = (folder / f"{name}.control").read_text("utf-8")
    settings = dict(re.findall(r"^(\w+) = '?(.*?)'?$", control, re.M))
    assert settings["trusted"] == "true"
    assert settings["comment"] == f"Stand-in by Toft: {stand_ins()[name]}"
    script = (folder / f"{name}--{settings['default_version']}.sql").read_text("utf-8")
    assert script.startswith(f"-- Toft's stand-in for {name}")
    for head in re.findall(r"create function .*?(?:\bas \$\$|\bbegin atomic\b)", script, re.S):
        assert "security definer" not in head or head.endswith("begin atomic"), head


def test_revokes_are_for_what_postgres_makes() -> None:
    """Three statements: tables, sequences, functions."""
    statements = [statement for statement in REVOKE_AUTO_EXPOSE.split(";") if statement.strip()]
    assert len(statements) == 3
    assert all("for role postgres in schema public" in statement for statement in statements)
