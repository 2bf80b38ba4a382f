"""Applies a project to a database, step by step, by the transaction rules of the Supabase CLI.

Everything runs as `postgres` on one connection, as with the CLI: what a file leaves set in the session (a
search path, a role) meets the next one, but for RESET ALL before each migration. The superuser's connection
is opened only for what `postgres` may not do: settings of the database, and permits (see `permit.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from toft.errors.project import HistoryUnknown, MigrationFailed, MigrationsOutOfOrder
from toft.migrate import history
from toft.migrate.batches import session_settings
from toft.migrate.cut import cut
from toft.migrate.digest import Stage, chain
from toft.migrate.notice import Notice, info
from toft.migrate.project import Migration, Project, SqlFile, decide_pending
from toft.migrate.sending import Elevated, send_file, send_seed
from toft.migrate.sessions import Connect, Report, Sessions
from toft.migrate.surroundings import make_buckets, set_up
from toft.migrate.watch import Watcher
from toft.pg.connection import Connection


class Applied(msgspec.Struct, frozen=True):
    """What was done. Paths in the order in which the files ran."""

    migrations: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    elevated: tuple[Elevated, ...] = ()
    notices: tuple[Notice, ...] = ()


def _say_nothing(text: str) -> None:
    pass


async def apply(
    project: Project,
    connect: Connect,
    start_at: int = 0,
    report: Report = _say_nothing,
    watcher: Watcher | None = None,
) -> Applied:
    """Carry out the steps of `digest.chain` from `start_at` on. The database has those before it.

    connect: opens a connection as the role that is given. report: gets a few words for each file. watcher:
    is told of each statement of a migration.
    Raises `MigrationFailed`, `MigrationsOutOfOrder`, `HistoryUnknown`; the database is then between two
    states and, if it was to become a template, of no use.
    """
    sessions = Sessions(connect, report)
    run = _Run(project, sessions, watcher)
    try:
        await run.carry_out(start_at)
    finally:
        sessions.close()
    return Applied(tuple(run.migrations), tuple(run.seeds), tuple(run.elevated), tuple(run.notices))


class Pushed(msgspec.Struct, frozen=True):
    """What was done to a database that is in use. failure: what ended it; what was done before stays."""

    applied: Applied
    pending: tuple[str, ...] = ()
    failure: MigrationFailed | None = None


async def push(
    project: Project,
    connect: Connect,
    *,
    has_roles: bool = False,
    has_seeds: bool = False,
    is_dry: bool = False,
    report: Report = _say_nothing,
    watcher: Watcher | None = None,
) -> Pushed:
    """Apply the migrations that a database's history does not know, and nothing of what a fresh one needs.

    has_roles, has_seeds: roles.sql before them, seeds after. is_dry: only say which are pending.
    Raises `MigrationsOutOfOrder`, `HistoryUnknown`.
    """
    sessions = Sessions(connect, report)
    run = _Run(project, sessions, watcher)
    failure: MigrationFailed | None = None
    pending: tuple[str, ...] = ()
    try:
        pending = tuple(file.path for file in await run.pending())
        if not is_dry:
            await run.push(has_roles=has_roles, has_seeds=has_seeds)
    except MigrationFailed as error:
        failure = error
    finally:
        sessions.close()
    applied = Applied(tuple(run.migrations), tuple(run.seeds), tuple(run.elevated), tuple(run.notices))
    return Pushed(applied, pending, failure)


class _Run:
    """One application of a project, and what has been done so far."""

    def __init__(self, project: Project, sessions: Sessions, watcher: Watcher | None) -> None:
        self._watcher = watcher
        self._project = project
        self._sessions = sessions
        self.migrations: list[str] = []
        self.seeds: list[str] = []
        self.elevated: list[Elevated] = []
        self.notices: list[Notice] = []

    async def carry_out(self, start_at: int) -> None:
        project = self._project
        steps = chain("", project)
        ahead = steps[start_at:]
        has_migrations = any(step.stage is Stage.MIGRATION for step in steps[:start_at])
        migrations = [project.migrations[step.index] for step in ahead if step.stage is Stage.MIGRATION]
        seeds = [project.seeds[step.index] for step in ahead if step.stage is Stage.SEED]

        if any(step.stage is Stage.SETUP for step in ahead):
            self.notices += await set_up(self._sessions, project.config)
        if any(step.stage is Stage.ROLES for step in ahead) and project.roles is not None:
            await self._apply_roles(project.roles)
        if migrations:
            await self._migrate(migrations, is_continued=has_migrations)
        if seeds:
            if has_migrations and not migrations:
                await self._restore_settings(project.migrations[-1])
            await self._seed(seeds)
        if ahead and project.config.buckets:
            self.notices += await make_buckets(await self._sessions.tenant(), project.config.buckets)

    async def pending(self) -> Sequence[Migration]:
        """What the history does not know."""
        return await self._pending(await self._sessions.tenant(), self._project.migrations)

    async def push(self, *, has_roles: bool, has_seeds: bool) -> None:
        """Migrations that the history does not know; around them what was asked for."""
        if has_roles and self._project.roles is not None:
            await self._apply_roles(self._project.roles)
        await self._migrate(self._project.migrations, is_continued=False)
        if has_seeds:
            await self._seed(self._project.seeds)

    async def _apply_roles(self, roles: SqlFile) -> None:
        self._sessions.report(f"applying {roles.path}")
        self.elevated += await send_file(self._sessions, roles, cut(roles.text))

    async def _migrate(self, ahead: Sequence[Migration], *, is_continued: bool) -> None:
        """is_continued: the database has the migrations before these, by the same chain."""
        tenant = await self._sessions.tenant()
        if not is_continued:
            ahead = await self._pending(tenant, ahead)
        await history.ensure_migrations(tenant)
        for migration in ahead:
            self._sessions.report(f"applying {migration.path}")
            await tenant.script("reset all")
            pieces = cut(migration.text)
            row = history.migration_row(migration, pieces)
            self.elevated += await send_file(self._sessions, migration, pieces, row, self._watcher)
            self.migrations.append(migration.path)

    async def _pending(self, tenant: Connection, local: Sequence[Migration]) -> Sequence[Migration]:
        recorded = await history.recorded_versions(tenant)
        pending = decide_pending(local, recorded, include_all=self._project.options.include_all)
        if pending.missing:
            raise HistoryUnknown(versions=" ".join(pending.missing))
        if pending.inserted:
            raise MigrationsOutOfOrder(files=", ".join(file.path for file in pending.inserted))
        return pending.files

    async def _restore_settings(self, last: Migration) -> None:
        """Seeds meet what the last migration has set in its session, also when that ran long ago."""
        tenant = await self._sessions.tenant()
        for statement in session_settings(cut(last.text)):
            await tenant.script(statement)

    async def _seed(self, ahead: Sequence[SqlFile]) -> None:
        tenant = await self._sessions.tenant()
        recorded = await history.recorded_seeds(tenant)
        await history.ensure_seeds(tenant)
        for seed in ahead:
            known = recorded.get(seed.path)
            row = history.seed_row(seed)
            if known is None:
                self._sessions.report(f"seeding from {seed.path}")
                await send_seed(tenant, seed, row)
                self.seeds.append(seed.path)
            elif known != seed.sha256:
                self.notices.append(info(f"{seed.path} has changed and ran before: it is not run again"))
                await tenant.pipeline([row])
