"""A query checked without being run: what it takes and gives, what it reads, and who may.

Everything happens in a transaction that is rolled back, read-only unless writes are asked for; nothing is
executed but what planning executes (functions that are immutable). A check as `postgres` says nothing about
the API, so the same plan is made as each of its roles: policies show as filters in it.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import asyncpg
import postgast

from toft.database.parse import facts_of
from toft.database.safety_rules import RULES
from toft.migrate.place import line_and_column

TIMEOUT_MS = 5000
ROLES = ("anon", "authenticated", "service_role")
_STATEMENTS = {
    "select_stmt": "select",
    "insert_stmt": "insert",
    "update_stmt": "update",
    "delete_stmt": "delete",
    "merge_stmt": "merge",
}
_DENIED = re.compile(r"permission denied for (\w+(?: \w+)?) (.+)")


async def check_query(
    url: str, sql: str, claims: Mapping[str, Any], *, writes: bool = False
) -> dict[str, Any]:
    """The report of one statement, in the shape that docs/check-query.md describes."""
    session: Any = await cast(Any, asyncpg).connect(url, statement_cache_size=0)
    try:
        return await _Check(session, sql, claims, writes=writes).run()
    finally:
        await session.close()


class _Check:
    def __init__(self, session: Any, sql: str, claims: Mapping[str, Any], *, writes: bool) -> None:
        self._session = session
        self._sql = sql.strip().rstrip(";")
        self._claims = dict(claims)
        self._writes = writes
        self._parameters = 0

    async def run(self) -> dict[str, Any]:
        report: dict[str, Any] = {
            "ok": False,
            "statement": None,
            "read_only": not self._writes,
            "error": None,
            "parameters": [],
            "columns": [],
            "relations": [],
            "plan": None,
            "roles": [],
            "warnings": _warnings(self._sql),
        }
        try:
            tree = postgast.parse(self._sql)
        except postgast.PgQueryError as error:
            report["error"] = self._error("42601", str(error), getattr(error, "cursorpos", 0) or None)
            return report
        if len(tree.stmts) != 1:
            report["error"] = self._error(
                "42601", f"one statement is checked at a time, not {len(tree.stmts)}"
            )
            return report
        kind = tree.stmts[0].stmt.WhichOneof("node") or ""
        report["statement"] = _STATEMENTS.get(kind, "utility")
        report["fingerprint"] = postgast.fingerprint(self._sql).hex
        try:
            await self._describe(report)
            if report["statement"] != "utility":
                plan = await self._explain("postgres", {})
                report["plan"] = _plan(plan)
                report["relations"] = _relations(plan)
                report["roles"] = await self._roles()
            report["ok"] = True
        except asyncpg.PostgresError as error:
            position = getattr(error, "position", None)
            report["error"] = self._error(
                str(getattr(error, "sqlstate", "XX000")),
                str(error.args[0]),
                int(position) if position else None,
                getattr(error, "hint", None),
                getattr(error, "detail", None),
            )
            report["error"]["suggestions"] = await self._suggest(error)
        return report

    async def _describe(self, report: dict[str, Any]) -> None:
        async with _rolled_back(self._session, writes=self._writes):
            prepared = await self._session.prepare(self._sql)
            parameters = prepared.get_parameters()
            report["parameters"] = [
                {"number": number, "type": kind.name} for number, kind in enumerate(parameters, start=1)
            ]
            report["columns"] = [
                {"name": column.name, "type": column.type.name} for column in prepared.get_attributes()
            ]
            self._parameters = len(parameters)

    async def _explain(self, role: str, claims: Mapping[str, Any]) -> dict[str, Any]:
        async with _rolled_back(self._session, writes=self._writes):
            if role != "postgres":
                await self._session.execute(f"set local role {role}")
                await self._session.fetchval(
                    "select set_config('request.jwt.claims', $1, true)", json.dumps(claims)
                )
            await self._session.execute("set local plan_cache_mode = force_generic_plan")
            await self._session.execute(f"prepare toft_check as {self._sql}")
            nulls = ", ".join(["null"] * self._parameters)
            execute = f"execute toft_check({nulls})" if nulls else "execute toft_check"
            raw = await self._session.fetchval(f"explain (format json, verbose) {execute}")
            return json.loads(raw)[0]["Plan"]

    async def _roles(self) -> list[dict[str, Any]]:
        """The same plan as each role of the API. service_role passes over policies.

        The others are held to it.
        """
        reports: list[dict[str, Any]] = []
        unguarded: set[tuple[str, str]] = set()
        for role in reversed(ROLES):
            claims = {"role": role, **(self._claims if role == "authenticated" else {})}
            report: dict[str, Any] = {
                "role": role,
                "claims": claims,
                "sqlstate": None,
                "filter": None,
                "missing": [],
            }
            try:
                plan = await self._explain(role, claims)
                filters = {
                    (node.get("Relation Name", ""), node["Filter"])
                    for node in _nodes(plan)
                    if "Filter" in node
                }
                if role == "service_role":
                    unguarded = filters
                if any(node.get("One-Time Filter") == "false" for node in _nodes(plan)):
                    report["outcome"] = "no_rows"
                else:
                    added = sorted(text for _, text in filters - unguarded)
                    report["outcome"] = "filtered" if added else "all"
                    report["filter"] = "; ".join(added) or None
            except asyncpg.InsufficientPrivilegeError as error:
                denied = _DENIED.search(str(error))
                report["outcome"], report["sqlstate"] = "denied", error.sqlstate
                report["missing"] = [f"{denied[1]} {denied[2]}"] if denied else [str(error)]
            reports.append(report)
        return reports[::-1]

    def _error(
        self,
        sqlstate: str,
        message: str,
        position: int | None = None,
        hint: str | None = None,
        detail: str | None = None,
    ) -> dict[str, Any]:
        line, column = line_and_column(self._sql, position - 1) if position else (None, None)
        token = re.match(r'"[^"]*"|\w+|\S', self._sql[position - 1 :]) if position else None
        return {
            "sqlstate": sqlstate,
            "message": message,
            "hint": hint,
            "detail": detail,
            "position": position,
            "line": line,
            "column": column,
            "token": token[0] if token else None,
            "suggestions": [],
        }

    async def _suggest(self, error: Any) -> list[str]:
        """Names that are near to the one that does not exist."""
        question = _NAMES.get(error.sqlstate or "")
        wanted = re.search(r'"([^"]+)"|(?:column|function) ([\w.]+)', str(error))
        if question is None or wanted is None:
            return []
        name = (wanted[1] or wanted[2]).rpartition(".")[2]
        rows = await self._session.fetch(question)
        names = {row["short"]: row["full"] for row in rows}
        return [names[near] for near in difflib.get_close_matches(name, names, n=3, cutoff=0.6)]


_OWN = "n.nspname !~ '^pg_' and n.nspname <> all ('{information_schema,toft,extensions,vault,realtime}')"
_RELATIONS = (
    f"pg_class as c join pg_namespace as n on n.oid = c.relnamespace"
    f" and c.relkind in ('r', 'p', 'v', 'm', 'f') and {_OWN}"
)
#: SQLSTATE → all names that could have been meant, those in public last, so that they count
_NAMES = {
    "42703": "select a.attname as short, n.nspname || '.' || c.relname || '.' || a.attname as full"
    f" from {_RELATIONS} join pg_attribute as a on a.attrelid = c.oid"
    " where a.attnum > 0 and not a.attisdropped"
    " order by n.nspname = 'public', c.relkind in ('r', 'p')",
    "42P01": "select c.relname as short, n.nspname || '.' || c.relname as full"
    f" from {_RELATIONS} order by n.nspname = 'public'",
    "42883": "select p.proname as short, n.nspname || '.' || p.proname"
    " || '(' || pg_get_function_identity_arguments(p.oid) || ')' as full"
    f" from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace and {_OWN}"
    " order by n.nspname = 'public'",
}


class _rolled_back:
    """A transaction that leaves nothing."""

    def __init__(self, session: Any, *, writes: bool) -> None:
        self._session = session
        self._writes = writes

    async def __aenter__(self) -> None:
        mode = "read write" if self._writes else "read only"
        await self._session.execute(f"begin {mode}; set local statement_timeout = {TIMEOUT_MS}")

    async def __aexit__(self, *_: object) -> None:
        await self._session.execute("rollback")
        await self._session.execute("deallocate all")  # what was prepared outlives its transaction


def _warnings(sql: str) -> list[dict[str, str]]:
    return [
        {"rule": fact.rule, "message": RULES[fact.rule][2].format(object=fact.object)}
        for fact in facts_of(sql)
        if fact.rule in ("update-without-where", "delete-without-where", "truncate", "drop-table")
    ]


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)


def _plan(plan: dict[str, Any]) -> dict[str, Any]:
    return {
        "total_cost": plan.get("Total Cost"),
        "rows": plan.get("Plan Rows"),
        "nodes": [node["Node Type"] for node in _nodes(plan)],
        "seq_scans": sorted(
            f"{node.get('Schema', 'public')}.{node['Relation Name']}"
            for node in _nodes(plan)
            if node["Node Type"] == "Seq Scan"
        ),
        "note": "estimates are made from the rows that are there",
    }


def _relations(plan: dict[str, Any]) -> list[dict[str, str]]:
    names = {
        f"{node.get('Schema', 'public')}.{node['Relation Name']}"
        for node in _nodes(plan)
        if "Relation Name" in node
    }
    return [{"name": name} for name in sorted(names)]
