"""A migration tried out: what was before, what came of it, and what that means, as one report.

Put together from values alone; `cli` brings the lease to try it on, the daemon runs the files. Every number
in it was measured in that run. It says what was looked at and never that something is safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toft.database.advisors import advise
from toft.database.catalogue import Catalogue, fingerprint, read_catalogue
from toft.database.compare import Change, compare
from toft.database.exposure import Exposure, read_exposure
from toft.database.finding import Finding
from toft.database.safety import look_at
from toft.migrate.cut import cut
from toft.migrate.lex import first_token
from toft.migrate.place import line_and_column
from toft.migrate.project import SqlFile
from toft.pg.connection import Connection
from toft.pg.wire import Statement

#: lock mode → whom it stops
_BLOCKS = {
    "AccessExclusiveLock": "reads,writes",
    "ExclusiveLock": "writes",
    "ShareRowExclusiveLock": "writes",
    "ShareLock": "writes",
    "ShareUpdateExclusiveLock": "schema changes",
}
_ROWS = """\
select coalesce(json_object_agg(name, rows), '{}') from (
  select n.nspname || '.' || c.relname as name,
    (xpath('/row/c/text()', query_to_xml(format('select count(*) as c from %I.%I', n.nspname, c.relname),
      false, true, '')))[1]::text::bigint as rows
  from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
  where c.relkind = 'r' and n.nspname !~ '^(pg_|supabase_)' and n.nspname not in (
    'information_schema', 'storage', 'realtime', 'vault', 'extensions', 'graphql', 'toft', 'cron', 'net')
    and (n.nspname <> 'auth' or c.relname = 'users')
    and pg_relation_size(c.oid) < 100 * 1024 * 1024) as counted
"""


class State(msgspec.Struct, frozen=True):
    """What a database is at one moment. rows: of tables under 100 MB; files: where their rows lie."""

    server: str
    catalogue: Catalogue
    findings: list[Finding]
    exposure: list[Exposure]
    rows: dict[str, int]
    files: dict[str, int]


async def read_state(session: Connection, exposed: Sequence[str]) -> State:
    """Look at everything that a trial compares."""
    results = await session.pipeline(
        [
            Statement(b"select current_setting('server_version')"),
            Statement(_ROWS.encode()),
            Statement(
                b"select coalesce(json_object_agg(c.oid, pg_relation_filenode(c.oid)::int8), '{}')"
                b" from pg_class as c where c.relkind in ('r', 'm') and c.oid >= 16384"
            ),
        ]
    )
    server, rows, files = (result.rows[0][0] or b"" for result in results)
    return State(
        server=server.decode().split(" ")[0],
        catalogue=await read_catalogue(session),
        findings=await advise(session, exposed),
        exposure=await read_exposure(session, exposed),
        rows=msgspec.json.decode(rows, type=dict[str, int]),
        files=msgspec.json.decode(files, type=dict[str, int]),
    )


def make_report(
    before: State, after: State, files: Sequence[SqlFile], pushed: Mapping[str, Any]
) -> dict[str, Any]:
    """The report of a trial, in the shape that docs/test-migration.md describes.

    files: those that were pending. pushed: `protocol.push.PushReport` as JSON.
    """
    texts = {file.path: file for file in files}
    ran: list[dict[str, Any]] = pushed["files"]
    known = {item.identity for item in before.catalogue.values() if item.kind == "table"}
    findings = look_at(files, known)
    kept = {finding.key for finding in before.findings}
    findings += [msgspec.structs.replace(finding, new=finding.key not in kept) for finding in after.findings]
    changes = compare(before.catalogue, after.catalogue)
    return {
        "version": 1,
        "server": after.server,
        "result": "failed" if pushed["failure"] else "applied",
        "duration_ms": round(pushed["duration_ms"], 1),
        "files": _files(files, ran),
        "failure": _failure(pushed["failure"]),
        "elevated": pushed["elevated"],
        "notices": pushed["notices"],
        "schema_diff": [msgspec.to_builtins(change) for change in changes],
        "lints": [
            {**msgspec.to_builtins(finding), "key": ":".join(finding.key)}
            for finding in sorted(findings, key=lambda each: (each.file or "", each.line or 0, *each.key))
        ],
        "locks": _locks(ran, texts, before),
        "rewrites": _rewrites(ran, texts, before),
        "data": _data(ran, texts, before, after),
        "exposure": _exposure(before, after),
        "functions_exposed": _functions(after),
        "replay": {"hash": fingerprint(after.catalogue), "from_zero": None, "second_run": None},
    }


def _files(files: Sequence[SqlFile], ran: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_path = {report["path"]: report for report in ran}
    return [
        {
            "path": file.path,
            "status": by_path[file.path]["status"] if file.path in by_path else "pending",
            "transaction": by_path.get(file.path, {}).get("transaction"),
            "statements": len(cut(file.text)),
            "duration_ms": round(by_path.get(file.path, {}).get("duration_ms", 0.0), 1),
        }
        for file in files
    ]


def _failure(problem: dict[str, Any] | None) -> dict[str, Any] | None:
    if problem is None:
        return None
    facts = problem["facts"]
    return {
        "code": problem["code"],
        "message": facts.get("text") or problem["title"],
        "file": facts.get("file"),
        "line": facts.get("line"),
        "column": facts.get("column"),
        "statement_index": facts.get("statement"),
        "sqlstate": facts.get("sqlstate"),
        "detail": facts.get("detail"),
        "hint": facts.get("hint"),
        "where": facts.get("where"),
        "excerpt": facts.get("excerpt"),
        "statements_kept": facts.get("kept"),
        "remedy": problem["remedy"],
    }


def _line(texts: Mapping[str, SqlFile], path: str, statement: int) -> int:
    file = texts.get(path)
    pieces = cut(file.text) if file is not None else []
    if file is None or statement >= len(pieces):
        return 1
    piece = pieces[statement]
    return line_and_column(file.text, piece.start + first_token(piece.text))[0]


def _locks(ran: list[dict[str, Any]], texts: Mapping[str, SqlFile], before: State) -> list[dict[str, Any]]:
    """Each lock at the statement that first took it, on relations that were there before."""
    known = {identity for kind, identity in before.catalogue if kind in ("table", "view", "matview")}
    known |= {name for name in before.rows if name.startswith("auth.")}
    found: list[dict[str, Any]] = []
    for report in ran:
        taken: set[tuple[str, str]] = set()
        last = report["seen"][-1]["at"] if report["seen"] else 0.0
        for seen in report["seen"]:
            for lock in seen["locks"]:
                name = f"{lock['schema']}.{lock['name']}"
                if (name, lock["mode"]) in taken or not (
                    name in known or lock["schema"] in ("auth", "storage")
                ):
                    continue
                taken.add((name, lock["mode"]))
                found.append(
                    {
                        "file": report["path"],
                        "line": _line(texts, report["path"], seen["statement"]),
                        "relation": name,
                        "mode": lock["mode"],
                        "blocks": _BLOCKS.get(lock["mode"], ""),
                        "held_until": "end_of_file" if report["transaction"] == "one" else "commit",
                        "held_ms": round((last - seen["at"]) * 1000, 1),
                        "had_rows": before.rows.get(name, 0) > 0,
                    }
                )
    return found


def _rewrites(ran: list[dict[str, Any]], texts: Mapping[str, SqlFile], before: State) -> list[dict[str, Any]]:
    files = dict(before.files)
    found: list[dict[str, Any]] = []
    for report in ran:
        for seen in report["seen"]:
            for lock in seen["locks"]:
                oid = str(lock["oid"])
                if oid in files and lock["file"] is not None and files[oid] != lock["file"]:
                    files[oid] = lock["file"]
                    found.append(
                        {
                            "file": report["path"],
                            "line": _line(texts, report["path"], seen["statement"]),
                            "relation": f"{lock['schema']}.{lock['name']}",
                            "reason": "truncate" if seen["tag"] == "TRUNCATE TABLE" else "rewrite",
                            "bytes": lock["bytes"],
                        }
                    )
    return found


def _data(
    ran: list[dict[str, Any]], texts: Mapping[str, SqlFile], before: State, after: State
) -> list[dict[str, Any]]:
    """Rows that statements touched, and tables whose number of rows is another now."""
    touched: dict[str, dict[str, Any]] = {}
    for report in ran:
        for seen in report["seen"]:
            for rows in seen["rows"]:
                name = f"{rows['schema']}.{rows['name']}"
                if rows["schema"].startswith("supabase_"):
                    continue
                entry = touched.setdefault(
                    name,
                    {
                        "relation": name,
                        "inserted": 0,
                        "updated": 0,
                        "deleted": 0,
                        "file": report["path"],
                        "line": _line(texts, report["path"], seen["statement"]),
                    },
                )
                for what in ("inserted", "updated", "deleted"):
                    entry[what] = max(entry[what], rows[what])
    for name in sorted({*before.rows, *after.rows}):
        if before.rows.get(name, 0) != after.rows.get(name, 0):
            touched.setdefault(name, {"relation": name, "file": None, "line": None})
    return [
        {**entry, "rows_before": before.rows.get(name), "rows_after": after.rows.get(name)}
        for name, entry in sorted(touched.items())
    ]


def _exposure(before: State, after: State) -> list[dict[str, Any]]:
    old = {each.relation: each for each in before.exposure}
    return [
        {**msgspec.to_builtins(each), "changed": old.get(each.relation) != each} for each in after.exposure
    ]


def _functions(after: State) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    suffix = "_security_definer_function_executable"
    for finding in after.findings:
        if finding.rule.endswith(suffix) and finding.object:
            entry = found.setdefault(
                finding.object,
                {"function": finding.object, "security": "definer", "anon": False, "authenticated": False},
            )
            entry[finding.rule.removesuffix(suffix)] = True
    return [found[name] for name in sorted(found)]


def summary_of(changes: Sequence[Change]) -> str:
    """So many things made, changed, dropped."""
    counts = {op: sum(change.op == op for change in changes) for op in ("create", "alter", "drop")}
    return ", ".join(f"{count} {op}" for op, count in counts.items() if count) or "nothing"
