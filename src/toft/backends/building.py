"""Makes the template of a recipe, from the longest part of its chain that there is. Runs in a job process.

Two templates come of a project: one when its migrations are done, from which the next one starts when a
migration or a seed is added, and the finished one, from which backends are cloned.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from toft.backends.chores import BuildTemplate, Built, NewTemplate
from toft.backends.fault import explain
from toft.backends.jobs import Report
from toft.backends.planning import bootstrap_for, open_project
from toft.engine import postmaster
from toft.engine.bootstrap import SUPERUSER
from toft.engine.clone import clone
from toft.engine.marks import lock
from toft.engine.postmaster import PostmasterSpec
from toft.engine.template import OBJECTS, Template, build_base, load_template, seal
from toft.errors.engine import TemplateFailed
from toft.errors.shape import ToftError
from toft.host.files import remove_tree, tree_bytes
from toft.migrate.digest import Stage, chain
from toft.migrate.elevate import TENANT
from toft.migrate.notice import Notice, warning
from toft.migrate.project import Project
from toft.migrate.run import Applied, apply
from toft.pg.connection import Connection, connect
from toft.pg.sqlstate import PostgresError
from toft.protocol.bundle import Bundle
from toft.storage.blobs.local import LocalBlobs
from toft.storage.seeding import seed_object
from toft.world import SystemClock, SystemEntropy


async def build(chore: BuildTemplate, report: Report) -> Built:
    """Make what is missing. Raises what a migration raised; nothing half-made is left then."""
    if chore.recipe.kind == "base" or chore.bundle is None:
        report(f"making the template of Postgres {chore.engine.version}, once for this machine")
        bootstrap = bootstrap_for(chore.engine.major)
        base = await build_base(chore.engine, bootstrap, chore.templates, chore.launch)
        if base.key != chore.recipe.key:
            raise TemplateFailed(engine=chore.engine.id, cause="the engine has changed; ask again")
        return Built(templates=(_describe(base),), applied=0)
    return await _build_project(chore, open_project(chore.bundle, chore.question), report)


async def _build_project(chore: BuildTemplate, project: Project, report: Report) -> Built:
    keys = [step.key for step in chore.recipe.steps]
    source, done = _longest_part(chore, keys)
    stages = [step.stage for step in chain(chore.recipe.base_key, project)]
    migrated = 1 + max(index for index, stage in enumerate(stages) if stage in _UP_TO_MIGRATIONS)
    made: list[NewTemplate] = []
    results: list[Applied] = []
    if done < migrated:
        unseeded = msgspec.structs.replace(
            project, seeds=(), config=msgspec.structs.replace(project.config, buckets=())
        )
        source, result = await _extend(chore, source, unseeded, done, keys[migrated - 1], report)
        made.append(_describe(source))
        results.append(result)
        done = migrated
    source, result = await _extend(chore, source, project, done, keys[-1], report)
    made.append(_describe(source))
    results.append(result)
    return Built(
        templates=tuple(made),
        applied=sum(len(result.migrations) + len(result.seeds) for result in results),
        notices=tuple(str(notice) for result in results for notice in result.notices),
    )


_UP_TO_MIGRATIONS = (Stage.SETUP, Stage.ROLES, Stage.MIGRATION)


def _longest_part(chore: BuildTemplate, keys: Sequence[str]) -> tuple[Template, int]:
    """The template that has most of the chain done, and how many steps that are."""
    for done in range(len(keys) - 1, 0, -1):
        template = load_template(chore.templates, keys[done - 1])
        if template is not None:
            return template, done
    base = load_template(chore.templates, chore.recipe.base_key)
    if base is None:
        raise TemplateFailed(engine=chore.engine.id, cause="its base template is not there any more")
    return base, 0


async def _extend(
    chore: BuildTemplate, source: Template, project: Project, done: int, key: str, report: Report
) -> tuple[Template, Applied]:
    """A template with the steps of the project from `done` on; without a server if they change nothing."""
    folder = chore.templates / f".building-{key}-{secrets.token_hex(4)}"
    try:
        folder.mkdir(mode=0o711)
        folder.chmod(0o711)
        clone(source, folder / "pgdata", chore.launch.uid)
        result, verifiers = Applied(), source.verifiers
        if done < len(chore.recipe.steps) - 1 or project.config.buckets:
            async with _running(chore, folder) as socket_path:
                result, verifiers = await _apply(
                    project, socket_path, source.password, done, _Brought(chore.bundle, folder), report
                )
        sealed = seal(
            folder,
            chore.templates,
            key,
            kind="project",
            engine_id=chore.engine.id,
            password=source.password,
            verifiers=verifiers,
        )
    except (OSError, ToftError, PostgresError) as error:
        raise explain(error, chore.templates.parent, f"building {key}") from None  # while the folder is there
    finally:
        remove_tree(folder)
    return sealed, result


@asynccontextmanager
async def _running(chore: BuildTemplate, folder: Path) -> AsyncGenerator[Path]:
    """A postmaster on the folder's data directory, stopped cleanly at the end, or at once on a failure."""
    spec = PostmasterSpec(
        engine=chore.engine,
        data_dir=folder / "pgdata",
        socket_dir=chore.launch.run_dir / f"t{secrets.token_hex(6)}",
        log_path=folder / "log",
        uid=chore.launch.uid,
        confinement=chore.launch.confinement,
        settings={"max_wal_size": "512MB"},
    )
    running = await postmaster.start(spec)
    try:
        yield spec.socket_path
        await postmaster.stop(running, "fast")
    finally:
        await postmaster.stop(running, "immediate")
        remove_tree(spec.socket_dir)


class _Brought(msgspec.Struct, frozen=True):
    """Where a project's files come from, and the folder of the template that its objects go to."""

    bundle: Path | None
    folder: Path


async def _apply(
    project: Project, socket_path: Path, password: str, done: int, brought: _Brought, report: Report
) -> tuple[Applied, dict[str, str]]:
    """The tenant's role has a password only while its files run."""
    session = secrets.token_urlsafe(24)
    passwords = {SUPERUSER: password, TENANT: session}
    await postmaster.set_passwords(socket_path, password, passwords)

    async def open_as(role: str) -> Connection:
        return await connect(str(socket_path), role, passwords[role])

    result = await apply(project, open_as, done, report)
    if any(bucket.files for bucket in project.config.buckets):
        report("filling buckets")
        tenant = await open_as(TENANT)
        try:
            said = await _fill_buckets(project, tenant, brought)
        finally:
            tenant.close()
        result = msgspec.structs.replace(result, notices=(*result.notices, *said))
    admin = await open_as(SUPERUSER)
    try:
        await admin.script("select toft.fold_schema_changes()")
        return result, await lock(admin, password)
    finally:
        admin.close()


async def _fill_buckets(project: Project, tenant: Connection, brought: _Brought) -> list[Notice]:
    """Put the files of buckets in; what is wrong with one is said, and the others go on."""
    assert brought.bundle is not None  # noqa: S101  (a project comes from one)
    files = Bundle.decode(brought.bundle.read_bytes()).files
    blobs = LocalBlobs(brought.folder / OBJECTS)
    world = SystemClock(), SystemEntropy()
    said: list[Notice] = []
    for bucket in project.config.buckets:
        for file in bucket.files:
            place = bucket.id, file.key
            problem = await seed_object(
                tenant, blobs, place, files[file.path], bucket.allowed_mime_types, world
            )
            if problem is not None:
                said.append(warning(f"{file.path} is not put into bucket `{bucket.id}`: {problem}"))
    for path in (brought.folder / OBJECTS).rglob("*"):
        if path.is_file():
            path.chmod(0o444)  # never written again, and read by whoever serves a lease
    return said


def _describe(template: Template) -> NewTemplate:
    return NewTemplate(template.key, template.kind, tree_bytes(template.path.parent))
