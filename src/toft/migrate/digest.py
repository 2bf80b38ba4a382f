"""Pure: the chain of names that a project's template and all its forerunners have.

Each step is named by the step before it and by what it does. So a database in which the first n steps were
carried out is named by the n-th key, and one more migration starts from the longest chain that is at hand.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator

import msgspec

from toft.migrate.project import Project

#: Raise it when the runner does something else with the same files.
_FORMAT = "1"


class Stage(enum.Enum):
    """In this order; setup and services always come, once."""

    SETUP = "setup"
    ROLES = "roles"
    MIGRATION = "migration"
    SEED = "seed"
    SERVICES = "services"


class Step(msgspec.Struct, frozen=True):
    """A link of the chain. index: which migration or seed. what: in a few words, for people."""

    key: str
    stage: Stage
    what: str
    index: int = 0


def chain(base_key: str, project: Project) -> list[Step]:
    """All steps of a project on the template named `base_key`. `run.apply` starts at any of them."""
    key = base_key
    steps: list[Step] = []
    for stage, index, what, content in _contents(project):
        link = msgspec.json.encode((_FORMAT, key, stage.value, content))
        key = hashlib.sha256(link).hexdigest()[:40]
        steps.append(Step(key, stage, what, index))
    return steps


def _contents(project: Project) -> Iterator[tuple[Stage, int, str, object]]:
    """For each step, what it is and everything that its effect depends on."""
    config = project.config
    yield (
        Stage.SETUP,
        0,
        "settings and secrets",
        (
            config.auto_expose_new_tables,
            config.webhooks_enabled,
            config.db_settings,
            config.vault,
        ),
    )
    if project.roles:
        yield Stage.ROLES, 0, project.roles.path, project.roles.sha256
    for index, migration in enumerate(project.migrations):
        content = (migration.version, migration.name, migration.sha256)
        yield Stage.MIGRATION, index, migration.path, content
    for index, seed in enumerate(project.seeds):
        yield Stage.SEED, index, seed.path, (seed.path, seed.sha256)
    yield Stage.SERVICES, 0, "buckets and services", (config.buckets, config.services)
