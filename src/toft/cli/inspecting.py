"""`toft db lint`, `advisors`, `diff`: looks at what a database is."""

from __future__ import annotations

import asyncio
import sys

import msgspec

from toft.cli.leases import named_lease, show_lease
from toft.database import inspect as activity
from toft.database import open as databases
from toft.database import query
from toft.database.advisors import DEFAULT_EXPOSED, advise
from toft.database.catalogue import Catalogue, read_catalogue
from toft.database.compare import as_sql, compare
from toft.database.finding import LEVELS, Finding, at_least
from toft.database.functions import check_functions
from toft.database.types import as_python, as_typescript, read_types
from toft.errors.daemon import UsageError
from toft.errors.database import FindingsRefused
from toft.pg.connection import Connection
from toft.protocol import plain_json
from toft.protocol.environment import database_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

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


def types(context: Context) -> int:
    """Types for programs."""
    language = context.arguments.get("lang") or "typescript"
    if language not in ("typescript", "python"):
        raise UsageError(command=context.usage.name, cause="`--lang` takes typescript or python")
    given = context.arguments.get("schemas")
    schemas = tuple(name.strip() for name in given.split(",")) if given else ("public",)
    found = _with_session(context, lambda session: read_types(session, schemas))
    if context.show.is_json:
        context.show.data(found)
    else:
        context.show.text((as_typescript if language == "typescript" else as_python)(found, schemas))
    return 0


def inspect(context: Context) -> int:
    """One subject of what goes on."""
    subject = context.usage.name.rpartition(" ")[2]
    rows = _with_session(context, lambda session: activity.inspect(session, subject))
    if context.show.is_json:
        context.show.data({subject: rows})
    elif not rows:
        context.show.note("nothing to show")
    else:
        head = list(rows[0])
        context.show.table(
            [name.upper() for name in head], [[str(row[name] or "-") for name in head] for row in rows]
        )
    return 0


def check_query(context: Context) -> int:
    """A query checked without being run."""
    *places, sql = context.arguments.operands
    claims: Mapping[str, Any] = {}
    if given := context.arguments.get("claims"):
        try:
            claims = plain_json.as_object(plain_json.decode(given.encode()))
        except ValueError:
            raise UsageError(command=context.usage.name, cause="`--claims` takes a JSON object") from None
    if sql == "-":
        sql = sys.stdin.read()
    url = context.arguments.get("db-url") or database_url(
        show_lease(context, context.daemon(), places[0] if places else None)
    )
    report = asyncio.run(query.check_query(url, sql, claims, writes=context.arguments.has("writes")))
    if context.show.is_json:
        context.show.data(report)
    else:
        _show_check(context, report)
    return 0 if report["ok"] else 1


def _show_check(context: Context, report: dict[str, Any]) -> None:
    show = context.show
    error = report["error"]
    if error:
        place = f" at line {error['line']}, column {error['column']}" if error["line"] else ""
        show.text(f"{error['sqlstate']}{place}: {error['message']}\n")
        for name in error["suggestions"]:
            show.text(f"  did you mean {name}?\n")
        return
    columns = ", ".join(f"{column['name']} {column['type']}" for column in report["columns"])
    show.text(f"{report['statement']} → {columns or 'nothing'}\n")
    if report["parameters"]:
        kinds = ", ".join(f"${each['number']} {each['type']}" for each in report["parameters"])
        show.text(f"takes {kinds}\n")
    for role in report["roles"]:
        why = role["filter"] or ", ".join(role["missing"])
        show.text(f"  {role['role']:14} {role['outcome']}{f'  {why}' if why else ''}\n")
    for warning in report["warnings"]:
        show.warning(warning["message"])


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
