"""The history of migrations, read and corrected by hand."""

from __future__ import annotations

from toft.migrate.cut import cut
from toft.migrate.history import array, ensure_migrations
from toft.pg.connection import Connection


async def read_history(session: Connection) -> list[tuple[str, str | None]]:
    """Version and name of what was applied, in order; none where there is no history."""
    found = await session.query("select to_regclass('supabase_migrations.schema_migrations') is not null")
    if found != [["t"]]:
        return []
    rows = await session.query(
        "select version, name from supabase_migrations.schema_migrations order by version"
    )
    return [(str(version), name) for version, name in rows]


async def mark_applied(session: Connection, version: str, name: str, text: str) -> None:
    """As if the file had been applied."""
    await ensure_migrations(session)
    await session.query(
        "insert into supabase_migrations.schema_migrations (version, name, statements) values ($1, $2, $3)"
        " on conflict (version) do update set name = excluded.name, statements = excluded.statements",
        version,
        name,
        array(piece.text for piece in cut(text)),
    )


async def mark_reverted(session: Connection, version: str) -> None:
    """As if it had never been applied."""
    await ensure_migrations(session)
    await session.query("delete from supabase_migrations.schema_migrations where version = $1", version)
