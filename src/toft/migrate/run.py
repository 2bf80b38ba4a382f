"""Applies a project to a database, step by step, by the transaction rules of the Supabase CLI.

Everything runs as `postgres` on one connection, as with the CLI: what a file leaves set in the session (a
search path, a role) meets the next one, but for RESET ALL before each migration. The superuser's connection
is opened only for what `postgres` may not do: settings of the database, and permits (see `permit.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from toft.errors.project import HistoryUnknown, MigrationFailed, MigrationsOutOfOrder
from toft.migrate import history, permit
from toft.migrate.batches import Batch, decide_sending, governs_transaction, session_settings, strip_comments
from toft.migrate.config import Bucket, Secret
from toft.migrate.digest import Stage, chain
from toft.migrate.do_block import rewrite_do_block
from toft.migrate.elevate import TENANT, Elevation, Refusal, custom_parameters, decide_elevation
from toft.migrate.failure import Outcome, migration_failed
from toft.migrate.lex import first_token
from toft.migrate.notice import Notice, info, warning
from toft.migrate.place import line_and_column
from toft.migrate.project import Migration, Project, SqlFile, decide_pending
from toft.migrate.split import Piece, split
from toft.pg.connection import Connection
from toft.pg.quote import identifier, literal
from toft.pg.sqlstate import ConnectionLost, PostgresError
from toft.pg.wire import Statement

ADMIN = "supabase_admin"

type Connect = Callable[[str], Awaitable[Connection]]
type Report = Callable[[str], None]

_KEEP_TO_OURSELVES = """\
alter default privileges for role postgres in schema public
  revoke select, insert, update, delete on tables from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  revoke usage, select on sequences from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  revoke execute on functions from anon, authenticated, service_role;
"""
_PUT_BUCKET = b"""\
insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types)
values ($1, $1, $2, $3, $4::text[])
on conflict (id) do update set public = excluded.public, file_size_limit = excluded.file_size_limit,
  allowed_mime_types = excluded.allowed_mime_types
"""


class Elevated(msgspec.Struct, frozen=True):
    """A statement that the superuser ran for `postgres`."""

    file: str
    line: int
    what: str


class Applied(msgspec.Struct, frozen=True):
    """What was done. Paths in the order in which the files ran."""

    migrations: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    elevated: tuple[Elevated, ...] = ()
    notices: tuple[Notice, ...] = ()


def _say_nothing(text: str) -> None:
    pass


async def apply(
    project: Project, connect: Connect, start_at: int = 0, report: Report = _say_nothing
) -> Applied:
    """Carry out the steps of `digest.chain` from `start_at` on. The database has those before it.

    connect: opens a connection as the role that is given. report: gets a few words for each file.
    Raises `MigrationFailed`, `MigrationsOutOfOrder`, `HistoryUnknown`; the database is then between two
    states and, if it was to become a template, of no use.
    """
    run = _Run(project, connect, report)
    try:
        await run.carry_out(start_at)
    finally:
        run.close()
    return run.applied()


class _Outgoing(msgspec.Struct):
    """A statement as it will be sent."""

    text: str
    refusal: Refusal | None = None


class _Run:
    """One application of a project: its two connections and what has been done so far."""

    def __init__(self, project: Project, connect: Connect, report: Report) -> None:
        self._project = project
        self._connect = connect
        self._report = report
        self._tenant: Connection | None = None
        self._admin: Connection | None = None
        self._has_createrole: bool | None = None
        self._migrations: list[str] = []
        self._seeds: list[str] = []
        self._elevated: list[Elevated] = []
        self._notices: list[Notice] = []

    def applied(self) -> Applied:
        return Applied(
            tuple(self._migrations), tuple(self._seeds), tuple(self._elevated), tuple(self._notices)
        )

    def close(self) -> None:
        for connection in (self._tenant, self._admin):
            if connection is not None:
                connection.close()

    async def carry_out(self, start_at: int) -> None:
        steps = chain("", self._project)
        stages = [step.stage for step in steps]
        ahead = steps[start_at:]
        is_set_up = start_at > 0
        if not is_set_up:
            await self._set_up()
        if any(step.stage is Stage.ROLES for step in ahead) and self._project.roles:
            await self._run_roles(self._project.roles)
        migrations = [self._project.migrations[step.index] for step in ahead if step.stage is Stage.MIGRATION]
        await self._migrate(migrations, Stage.MIGRATION in stages[:start_at])
        seeds = [self._project.seeds[step.index] for step in ahead if step.stage is Stage.SEED]
        if seeds and start_at > 0 and not migrations and self._project.migrations:
            await self._restore_session(self._project.migrations[-1])
        await self._seed(seeds)
        if ahead:
            await self._make_buckets(self._project.config.buckets)

    # Connections.

    async def _as_tenant(self) -> Connection:
        if self._tenant is None:
            self._tenant = await self._connect(TENANT)
            self._tenant.on_notice = self._on_notice
        return self._tenant

    async def _as_admin(self) -> Connection:
        if self._admin is None:
            self._admin = await self._connect(ADMIN)
        return self._admin

    def _on_notice(self, fields: dict[str, str]) -> None:
        """What the server says beside: NOTICE is for those who look on, WARNING for everybody."""
        if fields.get("V") == "WARNING":
            self._report(f"warning: {fields.get('M', '')}")

    async def _may_create_roles(self) -> bool:
        if self._has_createrole is None:
            tenant = await self._as_tenant()
            [[answer]] = await tenant.query(
                "select rolcreaterole from pg_catalog.pg_roles where rolname = $1", TENANT
            )
            self._has_createrole = answer == "t"
        return self._has_createrole

    # Before any file.

    async def _set_up(self) -> None:
        config = self._project.config
        for name, value in config.db_settings:
            await self._set_for_database(name, value)
        if not config.auto_expose_new_tables:
            await (await self._as_tenant()).script(_KEEP_TO_OURSELVES)
        if config.vault:
            await self._fill_vault(config.vault)

    async def _set_for_database(self, name: str, value: str) -> None:
        """The names come from a list of ours; a value that the server refuses is said and left out."""
        admin = await self._as_admin()
        try:
            await admin.script(f"alter database postgres set {identifier(name)} to {literal(value)}")
        except PostgresError as error:
            self._notices.append(warning(f"`db.settings.{name}` is left out: {error.message}"))

    async def _fill_vault(self, secrets: Sequence[Secret]) -> None:
        tenant = await self._as_tenant()
        if await tenant.query("select to_regclass('vault.secrets') is null") == [["t"]]:
            self._notices.append(warning("`[db.vault]` is left out: this database has no vault"))
            return
        for secret in secrets:
            try:
                known = await tenant.query("select id from vault.secrets where name = $1", secret.name)
                if known:
                    await tenant.query("select vault.update_secret($1::uuid, $2)", known[0][0], secret.value)
                else:
                    await tenant.query("select vault.create_secret($1, $2)", secret.value, secret.name)
            except PostgresError as error:
                self._notices.append(warning(f"`db.vault.{secret.name}` is left out: {error.message}"))

    # Files.

    async def _run_roles(self, roles: SqlFile) -> None:
        self._report(f"applying {roles.path}")
        await self._send_file(roles, split(roles.text), [])

    async def _migrate(self, ahead: Sequence[Migration], is_continued: bool) -> None:
        """is_continued: the database has the migrations before these, by the same chain."""
        if not ahead:
            return
        tenant = await self._as_tenant()
        if not is_continued:
            ahead = await self._pending(tenant, ahead)
        await history.ensure_migrations(tenant)
        for migration in ahead:
            self._report(f"applying {migration.path}")
            await tenant.script("reset all")
            pieces = split(migration.text)
            await self._send_file(migration, pieces, [history.migration_row(migration, pieces)])
            self._migrations.append(migration.path)

    async def _pending(self, tenant: Connection, local: Sequence[Migration]) -> Sequence[Migration]:
        recorded = await history.recorded_versions(tenant)
        pending = decide_pending(local, recorded, include_all=self._project.options.include_all)
        if pending.missing:
            raise HistoryUnknown(versions=" ".join(pending.missing))
        if pending.inserted:
            raise MigrationsOutOfOrder(files=", ".join(file.path for file in pending.inserted))
        return pending.files

    async def _send_file(self, file: SqlFile, pieces: Sequence[Piece], rows: Sequence[Statement]) -> None:
        """All statements of a file in the batches that it asks for; `rows` goes with the last one."""
        await self._grant_parameters(file, pieces)
        outgoing, elevations = await self._prepare(file, pieces)
        if elevations:
            await permit.open_permits(await self._as_admin(), elevations)
        try:
            await self._send_batches(file, pieces, outgoing, rows)
        finally:
            if elevations:
                await self._withdraw_permits()

    async def _send_batches(
        self,
        file: SqlFile,
        pieces: Sequence[Piece],
        outgoing: Sequence[_Outgoing],
        rows: Sequence[Statement],
    ) -> None:
        tenant = await self._as_tenant()
        kept = 0
        for batch in decide_sending(file.text, pieces).batches:
            is_last = batch.end == len(pieces) and not batch.is_alone
            if is_last and tenant.is_in_transaction:
                raise _left_open(file, pieces, kept)
            try:
                await _send(tenant, batch, outgoing, rows if is_last else ())
            except (PostgresError, ConnectionLost) as fault:
                error = fault if isinstance(fault, PostgresError) else _lost(fault)
                index = batch.first + (0 if batch.is_alone else error.statement_index or 0)
                if not is_last:  # past its last statement: the commit
                    index = min(index, batch.end - 1)
                sent = outgoing[index] if index < len(pieces) else _Outgoing("")
                refusal = sent.refusal.reason if sent.refusal and error.sqlstate == "42501" else None
                raise migration_failed(
                    file, pieces, index, sent.text, error, Outcome(kept, refusal)
                ) from fault
            if not tenant.is_in_transaction:
                kept = batch.end

    async def _restore_session(self, last: Migration) -> None:
        """Seeds meet what the last migration has set in its session, also when that ran long ago."""
        tenant = await self._as_tenant()
        for statement in session_settings(split(last.text)):
            await tenant.script(statement)

    async def _seed(self, ahead: Sequence[SqlFile]) -> None:
        if not ahead:
            return
        tenant = await self._as_tenant()
        recorded = await history.recorded_seeds(tenant)
        await history.ensure_seeds(tenant)
        for seed in ahead:
            known = recorded.get(seed.path)
            if known == seed.sha256:
                continue
            self._report(f"seeding from {seed.path}")
            if known is None:
                await self._send_seed(tenant, seed)
                self._seeds.append(seed.path)
            else:
                self._notices.append(info(f"{seed.path} has changed and ran before: it is not run again"))
                await tenant.pipeline([history.seed_row(seed)])

    async def _send_seed(self, tenant: Connection, seed: SqlFile) -> None:
        """A seed is one transaction, in a transaction block: LOCK TABLE works in it."""
        pieces = split(seed.text)
        done = 0
        await tenant.script("begin")
        try:
            for piece in pieces:
                await tenant.script(piece.text)
                done += 1
            await tenant.pipeline([history.seed_row(seed)])
            await tenant.script("commit")
        except PostgresError as error:
            sent = pieces[done].text if done < len(pieces) else ""
            outcome = Outcome(search_path=await _search_path(tenant))
            raise migration_failed(seed, pieces, done, sent, error, outcome) from error

    # What `postgres` may not do by itself.

    async def _grant_parameters(self, file: SqlFile, pieces: Sequence[Piece]) -> None:
        """Settings `app.*` of the database are common in old migrations; the hosted platform refuses most."""
        for name, index in custom_parameters(piece.text for piece in pieces).items():
            admin = await self._as_admin()
            has_it = await admin.query("select has_parameter_privilege($1, $2, 'set')", TENANT, name)
            if has_it != [["t"]]:
                await admin.script(f"grant set on parameter {identifier(name)} to {TENANT}")
                self._note_elevated(file, pieces[index], f"set {name}")

    def _note_elevated(self, file: SqlFile, piece: Piece, what: str) -> None:
        line, _ = line_and_column(file.text, piece.start + first_token(piece.text))
        self._elevated.append(Elevated(file.path, line, what))

    async def _prepare(
        self, file: SqlFile, pieces: Sequence[Piece]
    ) -> tuple[list[_Outgoing], list[Elevation]]:
        """What is sent for each statement, and what the permits in it do."""
        has_createrole = await self._may_create_roles()
        outgoing: list[_Outgoing] = []
        elevations: list[Elevation] = []
        for piece in pieces:
            decision = decide_elevation(piece.text, has_createrole=has_createrole)
            made: list[Elevation] = []
            sent = _Outgoing(piece.text)
            if isinstance(decision, Elevation):
                sent.text = f"select {permit.call(len(elevations))}"
                made = [decision]
            elif decision is not None:
                sent.refusal = decision
            elif block := rewrite_do_block(
                piece.text,
                lambda sql: decide_elevation(sql, has_createrole=has_createrole),
                lambda number: permit.call(len(elevations) + number),  # noqa: B023 - called before the next round
            ):
                sent.text, sent.refusal, made = block.text, block.refusal, list(block.elevations)
            outgoing.append(sent)
            elevations += made
            for elevation in made:
                self._note_elevated(file, piece, elevation.what)
        return outgoing, elevations

    async def _withdraw_permits(self) -> None:
        """The tenant's transaction is over by now, or ends here, so that it holds no lock on them."""
        if self._tenant is not None and self._tenant.is_in_transaction:
            self._tenant.close()
        if self._admin is not None and not self._admin.is_broken:
            await permit.close_permits(self._admin)

    # After all files.

    async def _make_buckets(self, buckets: Sequence[Bucket]) -> None:
        """As the API would make them, by service_role: the superuser must not meet a tenant's triggers."""
        if not buckets:
            return
        tenant = await self._connect(TENANT)
        try:
            for bucket in buckets:
                types = bucket.allowed_mime_types
                values = (
                    bucket.id,
                    str(bucket.public).lower(),
                    None if bucket.file_size_limit_bytes is None else str(bucket.file_size_limit_bytes),
                    None if types is None else history.array(types).decode(),
                )
                raw = tuple(None if value is None else value.encode() for value in values)
                try:
                    await tenant.pipeline(
                        [Statement(b"set local role service_role"), Statement(_PUT_BUCKET, raw)]
                    )
                except PostgresError as error:
                    self._notices.append(warning(f"bucket `{bucket.id}` is not made: {error.message}"))
        finally:
            tenant.close()


async def _send(
    tenant: Connection, batch: Batch, outgoing: Sequence[_Outgoing], rows: Sequence[Statement]
) -> None:
    texts = [sent.text for sent in outgoing[batch.first : batch.end]]
    if batch.is_alone:
        await tenant.script(texts[0])
    elif texts or rows:
        await tenant.pipeline([*(Statement(text.encode()) for text in texts), *rows])


async def _search_path(tenant: Connection) -> str | None:
    """What an earlier file has left of it, after a failure."""
    if tenant.is_broken:
        return None
    if tenant.is_in_transaction:
        await tenant.script("rollback")
    [[value]] = await tenant.query("select current_setting('search_path')")
    return "" if value == '""' else value


def _lost(fault: ConnectionLost) -> PostgresError:
    return PostgresError({"C": "08006", "M": f"the server is gone: {fault}"})


def _left_open(file: SqlFile, pieces: Sequence[Piece], kept: int) -> MigrationFailed:
    """The CLI reports success for such a file, and keeps nothing of it nor of the files after it."""
    begin = kept
    while begin < len(pieces) - 1 and not governs_transaction(strip_comments(pieces[begin].text)):
        begin += 1
    error = PostgresError(
        {
            "C": "25000",
            "M": "the file begins a transaction here and does not end it",
            "H": "Write `commit;` at its end",
        }
    )
    return migration_failed(file, pieces, begin, pieces[begin].text, error, Outcome(kept))
