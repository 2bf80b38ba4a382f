"""The chain of keys: what changes which of them."""

from __future__ import annotations

from tests.kit.projects import project_of
from toft.migrate.digest import Stage, chain
from toft.migrate.project import Project

FILES = {
    "supabase/roles.sql": "create role r;",
    "1_a.sql": "a",
    "2_b.sql": "b",
    "supabase/seed.sql": "s",
}
CONFIG = "[api]\nmax_rows = 5\n[db.settings]\nwork_mem = '1MB'\n[storage.buckets.x]\n"


def shared(first: Project, second: Project, base: str = "base", other_base: str = "base") -> int:
    """How many steps of the first the second one could start from."""
    before, after = (
        [step.key for step in chain(key, project)] for key, project in ((base, first), (other_base, second))
    )
    return sum(1 for one, other in zip(before, after, strict=False) if one == other)


def test_steps() -> None:
    """Setup, roles, each migration, each seed, services."""
    steps = chain("base", project_of(FILES, config=CONFIG))
    assert [(step.stage, step.index, step.what) for step in steps] == [
        (Stage.SETUP, 0, "settings and secrets"),
        (Stage.ROLES, 0, "supabase/roles.sql"),
        (Stage.MIGRATION, 0, "supabase/migrations/1_a.sql"),
        (Stage.MIGRATION, 1, "supabase/migrations/2_b.sql"),
        (Stage.SEED, 0, "supabase/seed.sql"),
        (Stage.SERVICES, 0, "buckets and services"),
    ]
    assert len({step.key for step in steps}) == 6
    assert [step.stage for step in chain("base", project_of({}))] == [Stage.SETUP, Stage.SERVICES]


def test_what_a_change_costs() -> None:
    """A change keeps the steps before it, and none after it."""
    project = project_of(FILES, config=CONFIG)
    renamed = {path.replace("2_b", "2_renamed"): text for path, text in FILES.items()}
    assert shared(project, project_of(FILES, config=CONFIG)) == 6
    assert shared(project, project, other_base="another") == 0
    assert shared(project, project_of({**FILES, "3_c.sql": ""}, config=CONFIG)) == 4
    assert shared(project, project_of({**FILES, "2_b.sql": "b "}, config=CONFIG)) == 3
    assert shared(project, project_of(renamed, config=CONFIG)) == 3
    assert shared(project, project_of({**FILES, "supabase/seed.sql": "t"}, config=CONFIG)) == 4
    assert shared(project, project_of({**FILES, "supabase/roles.sql": ""}, config=CONFIG)) == 1
    assert shared(project, project_of(FILES, config=CONFIG.replace("1MB", "2MB"))) == 0
    assert shared(project, project_of(FILES, config=CONFIG.replace("5", "6"))) == 5
    assert shared(project, project_of(FILES, config=CONFIG.replace("buckets.x", "buckets.y"))) == 5
    assert shared(project, project_of(FILES, config=CONFIG + "\n[db.vault]\na = 'b'")) == 0
    assert shared(project, project_of(FILES, config=CONFIG, no_seed=True)) == 4


def test_what_does_not_count() -> None:
    """Ports, the folder that the migrations lie in, a name of the project."""
    project = project_of(FILES, config=CONFIG)
    assert (
        shared(project, project_of(FILES, config=CONFIG + "\n[db]\nport = 1\n[studio]\nenabled = false")) == 6
    )
    moved = {path if "/" in path else f"db/{path}": text for path, text in FILES.items()}
    assert shared(project, project_of(moved, config=CONFIG, migrations_dir="db")) == 6


def test_keys_are_names_of_files() -> None:
    """Forty hexadecimal digits."""
    assert all(len(step.key) == 40 and int(step.key, 16) >= 0 for step in chain("", project_of(FILES)))
