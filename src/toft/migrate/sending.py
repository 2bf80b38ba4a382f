"""Sends the statements of one file, in the batches that it asks for, and tells what came of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from toft.errors.project import MigrationFailed
from toft.migrate import permit
from toft.migrate.batches import Batch, decide_sending, governs_transaction, strip_comments
from toft.migrate.cut import cut
from toft.migrate.do_block import rewrite_do_block
from toft.migrate.elevate import TENANT, Elevation, Refusal, custom_parameters, decide_elevation
from toft.migrate.failure import Outcome, migration_failed
from toft.migrate.lex import first_token
from toft.migrate.place import line_and_column
from toft.migrate.project import SqlFile
from toft.migrate.sessions import Sessions
from toft.migrate.split import Piece
from toft.migrate.watch import Seen, Watcher, question, read
from toft.pg.connection import Connection
from toft.pg.quote import identifier
from toft.pg.sqlstate import ConnectionLost, PostgresError
from toft.pg.wire import Statement


class Elevated(msgspec.Struct, frozen=True):
    """A statement that the superuser ran for `postgres`."""

    file: str
    line: int
    what: str


class _Outgoing(msgspec.Struct):
    """A statement as it will be sent. elevations: what the permits in it do."""

    text: str
    rows: str | None = None
    elevations: tuple[Elevation, ...] = ()
    refusal: Refusal | None = None


async def send_file(
    sessions: Sessions,
    file: SqlFile,
    pieces: Sequence[Piece],
    row: Statement | None = None,
    watcher: Watcher | None = None,
) -> list[Elevated]:
    """All statements of a migration (or of roles.sql, which has no row in the history)."""
    elevated = await _grant_parameters(sessions, file, pieces)
    outgoing = _prepare(pieces, has_createrole=await sessions.may_create_roles())
    permits = [elevation for sent in outgoing for elevation in sent.elevations]
    if not permits:
        await _send_batches(await sessions.tenant(), file, pieces, outgoing, row, watcher)
        return elevated
    admin = await sessions.admin()
    await permit.open_permits(admin, permits)
    try:
        await _send_batches(await sessions.tenant(), file, pieces, outgoing, row, watcher)
    finally:
        sessions.end_transaction()
        await permit.close_permits(admin)
    for piece, sent in zip(pieces, outgoing, strict=True):
        elevated += [_elevated(file, piece, elevation.what) for elevation in sent.elevations]
    return elevated


async def send_seed(tenant: Connection, seed: SqlFile, row: Statement) -> None:
    """A seed is one transaction, in a transaction block: LOCK TABLE works in it."""
    pieces = cut(seed.text)
    done = 0
    try:
        await tenant.script("begin")
        for piece in pieces:
            if piece.rows is None:
                await tenant.script(piece.text)
            else:
                await tenant.pipeline([_statement(piece.text, piece.rows)])
            done += 1
        await tenant.pipeline([row])
        await tenant.script("commit")
    except (PostgresError, ConnectionLost) as fault:
        sent = pieces[done].text if done < len(pieces) else ""
        outcome = Outcome(search_path=await _search_path(tenant))
        raise migration_failed(seed, pieces, done, sent, _as_error(fault), outcome) from fault


async def _grant_parameters(sessions: Sessions, file: SqlFile, pieces: Sequence[Piece]) -> list[Elevated]:
    """Settings `app.*` of the database are common in old migrations; the hosted platform refuses most."""
    elevated: list[Elevated] = []
    for name, index in custom_parameters(piece.text for piece in pieces).items():
        admin = await sessions.admin()
        has_it = await admin.query("select has_parameter_privilege($1, $2, 'set')", TENANT, name)
        if has_it != [["t"]]:
            await admin.script(f"grant set on parameter {identifier(name)} to {TENANT}")
            elevated.append(_elevated(file, pieces[index], f"set {name}"))
    return elevated


def _elevated(file: SqlFile, piece: Piece, what: str) -> Elevated:
    line, _ = line_and_column(file.text, piece.start + first_token(piece.text))
    return Elevated(file.path, line, what)


def _prepare(pieces: Sequence[Piece], *, has_createrole: bool) -> list[_Outgoing]:
    """What is sent for each statement; permits are numbered through the file."""

    def decide(statement: str) -> Elevation | Refusal | None:
        return decide_elevation(statement, has_createrole=has_createrole)

    def call(number: int) -> str:
        return permit.call(permits + number)

    outgoing: list[_Outgoing] = []
    permits = 0
    for piece in pieces:
        decision = decide(piece.text)
        if isinstance(decision, Elevation):
            sent = _Outgoing(f"select {call(0)}", elevations=(decision,))
        elif decision is not None:
            sent = _Outgoing(piece.text, refusal=decision)
        elif block := rewrite_do_block(piece.text, decide, call):
            sent = _Outgoing(block.text, None, block.elevations, block.refusal)
        else:
            sent = _Outgoing(piece.text, piece.rows)
        permits += len(sent.elevations)
        outgoing.append(sent)
    return outgoing


async def _send_batches(
    tenant: Connection,
    file: SqlFile,
    pieces: Sequence[Piece],
    outgoing: Sequence[_Outgoing],
    row: Statement | None,
    watcher: Watcher | None,
) -> None:
    kept = 0
    sending = decide_sending(file.text, pieces)
    if watcher is not None:
        watcher.began(file, len(pieces), sending.mode.value)
    for batch in sending.batches:
        is_last = batch.end == len(pieces) and not batch.is_alone
        if is_last and tenant.is_in_transaction:
            raise _left_open(file, pieces, kept)
        try:
            seen = await _send(
                tenant, batch, outgoing, row if is_last else None, is_watched=watcher is not None
            )
        except (PostgresError, ConnectionLost) as fault:
            error = _as_error(fault)
            index = batch.first + (0 if batch.is_alone else error.statement_index or 0)
            if not is_last:  # past its last statement: the commit
                index = min(index, batch.end - 1)
            sent = outgoing[index] if index < len(pieces) else _Outgoing("")
            refusal = sent.refusal.reason if sent.refusal and error.sqlstate == "42501" else None
            raise migration_failed(file, pieces, index, sent.text, error, Outcome(kept, refusal)) from fault
        if not tenant.is_in_transaction:
            kept = batch.end
        for number, (tag, what) in enumerate(seen, start=batch.first):
            if watcher is not None:
                watcher.saw(file, number, what, tag)
    if watcher is not None:
        watcher.ended(file)


async def _send(
    tenant: Connection,
    batch: Batch,
    outgoing: Sequence[_Outgoing],
    row: Statement | None,
    *,
    is_watched: bool,
) -> list[tuple[str, Seen]]:
    """Send a batch. What was seen after each of its statements, with the server's word on it."""
    going = outgoing[batch.first : batch.end]
    if batch.is_alone and going[0].rows is None:
        results = await tenant.script(going[0].text)
        if not is_watched or (tenant.is_in_transaction and tenant.has_failed):
            return []
        [answer] = await tenant.pipeline([question()])
        return [(results[-1].raw_tag.decode() if results else "", read(answer))]
    statements = [_statement(sent.text, sent.rows) for sent in going]
    if is_watched:
        statements = [each for statement in statements for each in (statement, question())]
    if row is not None:
        statements.append(row)
    if not statements:
        return []
    try:
        results = await tenant.pipeline(statements)
    except PostgresError as error:
        if is_watched and error.statement_index is not None:
            error.statement_index //= 2
        raise
    if not is_watched:
        return []
    pairs = zip(results[0 : 2 * len(going) : 2], results[1 : 2 * len(going) : 2], strict=True)
    return [(done.raw_tag.decode(), read(answer)) for done, answer in pairs]


def _statement(text: str, rows: str | None) -> Statement:
    return Statement(text.encode(), copied=None if rows is None else rows.encode())


async def _search_path(tenant: Connection) -> str | None:
    """What an earlier file has left of it, after a failure."""
    if tenant.is_broken:
        return None
    if tenant.is_in_transaction:
        await tenant.script("rollback")
    [[value]] = await tenant.query("select current_setting('search_path')")
    return "" if value == '""' else value


def _as_error(fault: PostgresError | ConnectionLost) -> PostgresError:
    if isinstance(fault, PostgresError):
        return fault
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
