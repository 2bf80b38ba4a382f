"""Running statements as somebody, and the probes that judge a write before any byte is kept.

A probe does as the caller what is about to be done, and takes it back: row level security decides, nothing
else. What is then really written, the service writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from toft.pg.connection import Connection
from toft.pg.sqlstate import PostgresError
from toft.pg.wire import Result, Statement
from toft.storage import records
from toft.storage.call import Call
from toft.storage.errors import already_exists, from_postgres
from toft.storage.records import BEGIN, ROLLBACK, SERVICE, Actor, ObjectRow


async def run_as(call: Call, actor: Actor, *statements: Statement) -> list[Result]:
    """All statements as one transaction, in one round trip, as the actor."""
    async with call.context.pool.lend() as conn:
        return await pipeline(call, conn, actor, statements)


async def run_in_turn(call: Call, *turns: tuple[Actor, Statement]) -> list[Result]:
    """Statements as different actors, in one transaction and one round trip; a result for each."""
    statements: list[Statement] = []
    for actor, statement in turns:
        statements += (call.scope(actor), statement)
    async with call.context.pool.lend() as conn:
        try:
            return (await conn.pipeline(statements))[1::2]
        except PostgresError as error:
            call.report(error)
            raise from_postgres(error) from None


async def probe_with_facts(call: Call, actor: Actor, row: ObjectRow, *, is_upsert: bool) -> bytes | None:
    """`probe`, and what the service knows of the bucket, in one round trip.

    None when the actor may not write, or the bucket is not there: ask one after the other then, so that what
    is wrong first is said first.
    """
    make = records.probe_upsert if is_upsert else records.probe_insert
    async with call.context.pool.lend() as conn:
        try:
            results = await conn.pipeline(
                [
                    BEGIN,
                    call.scope(SERVICE),
                    records.load_bucket_facts(row.bucket),
                    call.scope(actor),
                    make(actor, row),
                    ROLLBACK,
                ]
            )
        except PostgresError:
            return None
    return results[2].rows[0][0] if results[2].rows else None


async def pipeline(
    call: Call, conn: Connection, actor: Actor, statements: Sequence[Statement]
) -> list[Result]:
    """The same on a connection that is already lent, and in the transaction that is open there, if one is."""
    try:
        results = await conn.pipeline([call.scope(actor), *statements])
    except PostgresError as error:
        call.report(error)
        raise from_postgres(error) from None
    return results[1:]


async def probe(call: Call, actor: Actor, row: ObjectRow, *, is_upsert: bool) -> None:
    """Raise unless the actor may write this row. Nothing is left behind."""
    make = records.probe_upsert if is_upsert else records.probe_insert
    async with call.context.pool.lend() as conn:
        try:
            await conn.pipeline([BEGIN, call.scope(actor), make(actor, row), ROLLBACK])
        except PostgresError as error:
            if error.sqlstate == "23505":
                raise already_exists() from None
            call.report(error)
            raise from_postgres(error) from None


async def probe_move(call: Call, actor: Actor, source: tuple[str, str], target: tuple[str, str]) -> bool:
    """Whether the actor sees the source and may make it the target. Raises when a policy refuses."""
    owner = call.owner_id
    move = records.move_object(actor, source, target, owner, records.as_uuid(owner))
    async with call.context.pool.lend() as conn:
        try:
            found = await conn.pipeline(
                [BEGIN, call.scope(actor), records.load_object(actor, *source), move, ROLLBACK]
            )
        except PostgresError as error:
            call.report(error)
            raise from_postgres(error) from None
    return bool(found[2].rows) and bool(found[3].rows)


async def save(call: Call, row: ObjectRow) -> tuple[bytes, str | None]:
    """Make an object visible: its JSON, and the version that it replaces."""
    results = await run_as(
        call,
        SERVICE,
        records.lock_key(row.bucket, row.key),
        records.load_version(row.bucket, row.key),
        records.save_object(row),
    )
    replaced = results[1].rows
    version = replaced[0][0] if replaced else None
    saved = results[2].rows[0][0]
    return saved or b"null", version.decode() if version is not None else None
