"""`toft db lint`, `advisors`, `diff`: looks at what a database is."""

from __future__ import annotations

import asyncio

import msgspec

from toft.cli.leases import named_lease, show_lease
from toft.database import open as databases
from toft.database.advisors import DEFAULT_EXPOSED, advise
from toft.database.catalogue import Catalogue, read_catalogue
from toft.database.compare import as_sql, compare
from toft.database.finding import LEVELS, Finding, at_least
from toft.database.functions import check_functions
from toft.errors.daemon import UsageError
from toft.errors.database import FindingsRefused
from toft.pg.connection import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from toft.cli.context import Context


def advisors(context: Context) -> int:
    """Security and speed by the catalogue."""

    async def look(session: Connection) -> list[Finding]:
        return await advise(session, _exposed(context))

    return _show_findings(context, _with_session(context, look))


def lint(context: Context) -> int:
    """Functions, statement by statement."""
    return _show_findings(context, _with_session(context, check_functions))


def diff(context: Context) -> int:
    """What leads from the first database to the second."""
    first, second = context.arguments.operands

    async def both() -> tuple[Catalogue, Catalogue]:
        return await _read(context, first), await _read(context, second)

    before, after = asyncio.run(both())
    changes = compare(before, after)
    if context.show.is_json:
        context.show.data({"changes": [msgspec.to_builtins(change) for change in changes]})
    elif not changes:
        context.show.note("no difference")
    else:
        context.show.text("\n".join(as_sql(before, after)) + "\n")
    return 0


async def _read(context: Context, place: str) -> Catalogue:
    session = await _open(context, place)
    try:
        return await read_catalogue(session)
    finally:
        session.close()


async def _open(context: Context, place: str | None) -> Connection:
    """A lease by id or label, or any database by its URL."""
    if place is not None and "://" in place:
        return await databases.open_url(place)
    return await databases.open_lease(show_lease(context, context.daemon(), place))


def _with_session[Answer](context: Context, look: Callable[[Connection], Awaitable[Answer]]) -> Answer:
    async def work() -> Answer:
        session = await _open(context, context.arguments.get("db-url") or named_lease(context))
        try:
            return await look(session)
        finally:
            session.close()

    return asyncio.run(work())


def _exposed(context: Context) -> tuple[str, ...]:
    given = context.arguments.get("schemas")
    return tuple(name.strip() for name in given.split(",")) if given else DEFAULT_EXPOSED


def _show_findings(context: Context, findings: list[Finding]) -> int:
    level = context.arguments.get("fail-on") or "none"
    if level not in (*LEVELS, "none"):
        raise UsageError(
            command=context.usage.name, cause=f"`--fail-on` takes one of none, {', '.join(LEVELS)}"
        )
    if context.show.is_json:
        context.show.data({"findings": [msgspec.to_builtins(finding) for finding in findings]})
    elif not findings:
        context.show.note("nothing found")
    else:
        context.show.table(
            ["LEVEL", "RULE", "FINDING", "INSTEAD"],
            [[each.level, each.rule, each.message, each.remedy] for each in findings],
        )
    serious = at_least(findings, level)
    if serious:
        raise FindingsRefused(count=len(serious), level=level)
    return 0
