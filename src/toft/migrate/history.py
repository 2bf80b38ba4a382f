"""The tables by which Supabase's tools remember what was applied, as they expect to find them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toft.migrate.project import Migration, SqlFile
from toft.migrate.split import Piece
from toft.pg.connection import Connection
from toft.pg.wire import Statement

_ENSURE_MIGRATIONS = """\
begin;
set local lock_timeout = '4s';
create schema if not exists supabase_migrations;
create table if not exists supabase_migrations.schema_migrations (version text primary key);
alter table supabase_migrations.schema_migrations add column if not exists statements text[];
alter table supabase_migrations.schema_migrations add column if not exists name text;
commit;
"""
_ENSURE_SEEDS = """\
begin;
set local lock_timeout = '4s';
create schema if not exists supabase_migrations;
create table if not exists supabase_migrations.seed_files (path text primary key, hash text not null);
commit;
"""


async def ensure_migrations(connection: Connection) -> None:
    """Make the table if it is not there."""
    await connection.script(_ENSURE_MIGRATIONS)


async def ensure_seeds(connection: Connection) -> None:
    """Make the table if it is not there."""
    await connection.script(_ENSURE_SEEDS)


async def recorded_versions(connection: Connection) -> list[str]:
    """The versions in the history; none when there is no history yet."""
    if not await _exists(connection, "supabase_migrations.schema_migrations"):
        return []
    rows = await connection.query("select version from supabase_migrations.schema_migrations")
    return [version for [version] in rows if version is not None]


async def recorded_seeds(connection: Connection) -> dict[str, str]:
    """Path → SHA-256 of the seeds that ran."""
    if not await _exists(connection, "supabase_migrations.seed_files"):
        return {}
    rows = await connection.query("select path, hash from supabase_migrations.seed_files")
    return {path: sha256 for [path, sha256] in rows if path is not None and sha256 is not None}


async def _exists(connection: Connection, table: str) -> bool:
    return await connection.query("select to_regclass($1) is not null", table) == [["t"]]


def migration_row(migration: Migration, pieces: Sequence[Piece]) -> Statement:
    """The row that says: applied."""
    return Statement(
        b"insert into supabase_migrations.schema_migrations (version, name, statements) values ($1, $2, $3)",
        (migration.version.encode(), migration.name.encode(), array(piece.text for piece in pieces)),
    )


def seed_row(seed: SqlFile) -> Statement:
    """The row that says: ran with this content."""
    return Statement(
        b"insert into supabase_migrations.seed_files (path, hash) values ($1, $2)"
        b" on conflict (path) do update set hash = excluded.hash",
        (seed.path.encode(), seed.sha256.encode()),
    )


def array(texts: Iterable[str]) -> bytes:
    """An array of texts, as the server reads it."""
    quoted = ('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts)
    return ("{" + ",".join(quoted) + "}").encode()
