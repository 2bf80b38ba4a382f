"""Which template a project needs: reads the bundle, chooses the engine, follows the chain.

Runs in a job process.
"""

from __future__ import annotations

from pathlib import Path

from toft.auth import schema as auth_schema
from toft.backends.chores import AdmitProject, MakeRecipe
from toft.backends.recipe import Question, Recipe, Step, make_recipe
from toft.engine.binaries import choose_engine
from toft.engine.bootstrap import Bootstrap, Script, load_bootstrap
from toft.engine.template import base_key
from toft.errors.daemon import BadRequest
from toft.errors.project import ProjectUnknown
from toft.ids import TemplateKey
from toft.migrate.digest import chain
from toft.migrate.project import Options, Project, read_project
from toft.protocol.bundle import MIGRATIONS, Bundle
from toft.storage import schema as storage_schema


def bootstrap_for(major: int) -> Bootstrap:
    """A fresh database with the schemas of all services."""
    services = [*auth_schema.scripts(major), *storage_schema.scripts(major)]
    return load_bootstrap(major, [Script(name=name, role=role, sql=sql) for name, role, sql in services])


def admit(chore: AdmitProject) -> None:
    """Give a received bundle its name if it is the one it claims to be."""
    try:
        digest = Bundle.decode(chore.received.read_bytes()).digest()
    except ValueError as error:
        chore.received.unlink(missing_ok=True)
        raise BadRequest(cause=str(error)) from None
    if digest != chore.digest:
        chore.received.unlink(missing_ok=True)
        raise BadRequest(cause=f"the bundle's digest is {digest}, not {chore.digest}")
    chore.received.rename(chore.path)


def read(chore: MakeRecipe) -> Recipe:
    """The recipe of a project, or of an empty database."""
    project = None if chore.bundle is None else open_project(chore.bundle, chore.question)
    wanted = project.config.major_version if project is not None else None
    engine, note = choose_engine(chore.engines, wanted)
    base = TemplateKey(base_key(engine, bootstrap_for(engine.major)))
    if project is None:
        return Recipe(key=base, base_key=base, engine_id=engine.id)
    notices = [str(notice) for notice in project.notices]
    return make_recipe(
        engine.id,
        base,
        tuple(Step(key=TemplateKey(step.key), what=step.what) for step in chain(base, project)),
        project.config.services,
        tuple([note, *notices] if note else notices),
    )


def open_project(path: Path, question: Question) -> Project:
    """The project of a bundle that lies on the disk. Raises `ProjectUnknown` when it does not."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ProjectUnknown(digest=question.project or "") from None
    options = Options(
        include_all=question.include_all,
        no_migrations=question.no_migrations,
        no_seed=question.no_seed,
        migrations_dir=question.migrations_dir or MIGRATIONS,
    )
    return read_project(Bundle.decode(raw), options)
