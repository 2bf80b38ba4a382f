"""Functions looked at statement by statement: by plpgsql_check where the server has it, else not at all."""

from __future__ import annotations

from typing import Any

import msgspec

from toft.database.finding import Finding
from toft.errors.database import ToolMissing
from toft.pg.connection import Connection
from toft.pg.sqlstate import PostgresError

_FUNCTIONS = """\
select p.oid::text, n.nspname || '.' || p.proname, coalesce(t.tgrelid, 0)::text
from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace join pg_language as l on l.oid = p.prolang
left join pg_trigger as t on t.tgfoid = p.oid and not t.tgisinternal
where l.lanname = 'plpgsql' and n.nspname !~ '^(pg_|supabase_)' and n.nspname not in (
  'information_schema', 'auth', 'storage', 'realtime', 'vault', 'extensions', 'graphql', 'graphql_public',
  'net', 'cron', 'pgmq', 'pgsodium', 'toft')
  and (p.prorettype <> 'trigger'::regtype or t.oid is not null)
  and not exists (select from pg_depend as d where d.classid = 'pg_proc'::regclass and d.objid = p.oid
    and d.deptype = 'e')
order by 2, 3
"""


async def check_functions(session: Connection) -> list[Finding]:
    """What plpgsql_check says of each function, of trigger functions for each of their tables.

    Everything is rolled back. Raises `ToolMissing` where the server has no plpgsql_check.
    """
    await session.script("begin")
    try:
        try:
            await session.script("create extension if not exists plpgsql_check with schema extensions")
        except PostgresError as error:
            raise ToolMissing(
                tool="plpgsql_check",
                cause=error.message,
                advice="install it for this Postgres (Debian: postgresql-NN-plpgsql-check), and set"
                " `major_version` to that one",
            ) from None
        found: list[Finding] = []
        for oid, name, table in await session.query(_FUNCTIONS):
            rows = await session.query(
                "select extensions.plpgsql_check_function($1::oid::regprocedure, $2::oid::regclass,"
                " format => 'json')",
                oid,
                table,
            )
            said: dict[str, Any] = msgspec.json.decode("\n".join(str(row[0]) for row in rows) or "{}")
            found += [_finding(str(name), issue) for issue in said.get("issues", [])]
        return found
    finally:
        await session.script("rollback")


def _finding(function: str, issue: dict[str, Any]) -> Finding:
    level = "error" if issue.get("level") == "error" else "warn"
    return Finding(
        rule=f"plpgsql-{issue.get('sqlState', '00000')}",
        source="plpgsql_check",
        level=level,
        category="safety",
        line=int(issue.get("statement", {}).get("lineNumber", 0)) or None,
        object=function,
        message=f"{function}: {issue.get('message')}",
        remedy=issue.get("hint") or "mend the function",
    )
