"""Pure: from a request to a recipe: which engine, which template, through which steps, with what settings."""

from __future__ import annotations

from typing import Literal

import msgspec

from toft.ids import TemplateKey
from toft.protocol.lease import CreateLease
from toft.protocol.worker import ServiceSettings


class Step(msgspec.Struct, frozen=True):
    """One link of the chain that leads from the base template to the project's. what: for people."""

    key: TemplateKey
    what: str


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How a backend comes to be. `key` names the template that it is cloned from.

    base_key: the template of a fresh database. steps: what is applied to it, in order; the last one's key is
    `key`, and with none `key` is `base_key`. notices: what the user should know about the project's files.
    """

    key: TemplateKey
    base_key: TemplateKey
    engine_id: str
    steps: tuple[Step, ...] = ()
    settings: ServiceSettings = ServiceSettings()
    notices: tuple[str, ...] = ()

    @property
    def kind(self) -> Literal["base", "project"]:
        return "project" if self.key != self.base_key else "base"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a request that decides about the recipe; equal questions have equal recipes."""

    project: str | None = None
    include_all: bool = False
    no_migrations: bool = False
    no_seed: bool = False
    migrations_dir: str | None = None


def question_of(create: CreateLease) -> Question:
    """What a request asks for, apart from ports, times and labels."""
    if create.project is None:
        return Question()
    return Question(
        project=create.project,
        include_all=create.include_all,
        no_migrations=create.no_migrations,
        no_seed=create.no_seed,
        migrations_dir=create.migrations_dir,
    )


def make_recipe(
    engine_id: str,
    base_key: TemplateKey,
    steps: tuple[Step, ...],
    settings: ServiceSettings,
    notices: tuple[str, ...],
) -> Recipe:
    """The recipe of a project on one engine."""
    return Recipe(
        key=steps[-1].key if steps else base_key,
        base_key=base_key,
        engine_id=engine_id,
        steps=steps,
        settings=settings,
        notices=notices,
    )
