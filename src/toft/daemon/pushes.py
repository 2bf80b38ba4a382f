"""The part of the control API that applies migrations to a lease in use."""

from __future__ import annotations

from typing import Any

from toft.backends import keep
from toft.backends.acts.create import secrets_of
from toft.backends.backend import Wish
from toft.backends.chores import PushProject
from toft.backends.context import Context
from toft.backends.recipe import Question
from toft.engine.bootstrap import SUPERUSER
from toft.errors.daemon import BadRequest
from toft.errors.project import ProjectUnknown
from toft.http.message import Request
from toft.protocol.push import PushReport, PushWish

LONGEST_SECONDS = 24 * 3600.0


class PushApi:
    """Answers with messages."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def push(self, request: Request, names: dict[str, str], message: PushWish) -> PushReport:
        context = self._context
        if not 0 < message.timeout_seconds <= LONGEST_SECONDS:
            raise BadRequest(cause="a timeout is more than 0 seconds and at most a day")
        lease = context.leases.get(names["id"])
        backend = keep.backend_of(context, lease)
        question = Question(
            project=message.project, include_all=message.include_all, migrations_dir=message.migrations_dir
        )
        bundle = context.projects.bundle(question)
        if bundle is None:
            raise ProjectUnknown(digest="")
        waiter = context.expected.expect(backend.id)
        if backend.wish is Wish.ASLEEP:
            context.estate.change(backend.id, wish=Wish.STARTED)
        context.estate.touch(backend.id)
        await waiter
        passwords = secrets_of(backend).passwords
        report = await context.jobs.run(
            PushProject(
                question=question,
                bundle=bundle,
                socket_path=context.places.socket(backend.id),
                opens_as={role: passwords[role] for role in (SUPERUSER, "postgres")},
                wish=message,
            ),
            PushReport,
        )
        if report.applied:
            with context.store.transaction() as tx:
                context.ledger.append(tx, "lease.migrated", lease.id, files=len(report.applied))
        return report

    def methods(self) -> dict[str, Any]:
        """Its routes by name."""
        return {"push_project": self.push}
