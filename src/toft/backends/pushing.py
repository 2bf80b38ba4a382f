"""Applies pending migrations to the database of a lease. Runs in a job process."""

from __future__ import annotations

import asyncio
import time

import msgspec

from toft.backends.chores import PushProject
from toft.backends.jobs import Report
from toft.backends.planning import open_project
from toft.errors.project import MigrationTimeout
from toft.errors.shape import ToftError
from toft.migrate.project import SqlFile
from toft.migrate.run import Applied, Pushed, push
from toft.migrate.watch import Seen, Watcher
from toft.pg.connection import Connection, connect
from toft.protocol.push import FileReport, PushReport


class _Notes(Watcher):
    """Remembers what was seen, file by file."""

    def __init__(self, *, keeps_seen: bool) -> None:
        self.files: list[FileReport] = []
        self._keeps_seen = keeps_seen
        self._since = 0.0

    def began(self, file: SqlFile, statements: int, transaction: str) -> None:
        self._since = time.monotonic()
        self.files.append(
            FileReport(
                path=file.path,
                status="failed",
                transaction=transaction,
                statements=statements,
                duration_ms=0.0,
                seen=[],
            )
        )

    def saw(self, file: SqlFile, index: int, seen: Seen, tag: str) -> None:
        if self._keeps_seen:
            self.files[-1].seen.append({"statement": index, "tag": tag, **msgspec.to_builtins(seen)})

    def ended(self, file: SqlFile) -> None:
        self.files[-1].status = "applied"
        self.close()

    def close(self) -> None:
        """The last file came to its end, one way or the other."""
        if self.files and not self.files[-1].duration_ms:
            self.files[-1].duration_ms = (time.monotonic() - self._since) * 1000


async def push_project(chore: PushProject, report: Report) -> PushReport:
    """Raises what speaks against beginning at all; a failure in the middle is part of the answer."""
    wish = chore.wish
    project = open_project(chore.bundle, chore.question)
    notes = _Notes(keeps_seen=wish.watch)

    async def open_as(role: str) -> Connection:
        return await connect(str(chore.socket_path), role, chore.opens_as[role])

    began = time.monotonic()
    pushed = Pushed(applied=Applied())
    failure: ToftError | None = None
    try:
        async with asyncio.timeout(wish.timeout_seconds):
            pushed = await push(
                project,
                open_as,
                has_roles=wish.include_roles,
                has_seeds=wish.include_seed,
                is_dry=wish.dry_run,
                report=report,
                watcher=notes,
            )
            failure = pushed.failure
    except TimeoutError:
        running = notes.files[-1].path if notes.files else "it"
        failure = MigrationTimeout(file=running, seconds=wish.timeout_seconds)
    notes.close()
    return PushReport(
        pending=list(pushed.pending),
        applied=[file.path for file in notes.files if file.status == "applied"],
        seeds=list(pushed.applied.seeds),
        files=notes.files,
        elevated=[msgspec.to_builtins(each) for each in pushed.applied.elevated],
        notices=[str(notice) for notice in (*project.notices, *pushed.applied.notices)],
        failure=failure.to_json() if failure is not None else None,
        duration_ms=(time.monotonic() - began) * 1000,
    )
