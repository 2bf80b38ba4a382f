"""Pure: the report of a trial for people: as a table on a terminal, as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_MOST_CHANGES = 60
_MARKS = {"create": "+", "alter": "~", "drop": "-"}


def as_text(report: dict[str, Any]) -> str:
    """Sections with a line for each thing, those first that ask for a decision."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: dict[str, Any]) -> Iterator[str]:
    failure = report["failure"]
    yield f"{report['result']} on Postgres {report['server']} in {report['duration_ms']:.0f} ms"
    for file in report["files"]:
        took = f"  {file['duration_ms']:.0f} ms" if file["status"] != "pending" else ""
        yield f"  {file['status']:8} {file['path']}  {file['statements']} statements{took}"
    if failure:
        yield ""
        yield f"failure  {failure['file']}:{failure['line']}: {failure['message']} ({failure['sqlstate']})"
        if failure["excerpt"]:
            yield from (f"  {line}" for line in str(failure["excerpt"]).split("\n"))
        yield f"  remedy: {failure['remedy']}"
    yield from _section(
        "changes", [_change(change) for change in _apart(report["schema_diff"])], _MOST_CHANGES
    )
    new = [lint for lint in report["lints"] if lint["new"]]
    yield from _section("findings", [_lint(lint) for lint in new])
    yield from _section("locks", [_lock(lock) for lock in report["locks"]])
    yield from _section(
        "rewrites", [f"{each['relation']}  {each['file']}:{each['line']}" for each in report["rewrites"]]
    )
    yield from _section("rows", [_rows(rows) for rows in report["data"]])
    changed = [each for each in report["exposure"] if each["changed"]]
    yield from _section("who may what", [_exposed(each) for each in changed])
    replay = report["replay"]
    yield ""
    yield f"replay   from zero: {replay['from_zero'] or '-'}   second run: {replay['second_run'] or '-'}"
    yield f"schema   {str(replay['hash'])[:16]}"


def _apart(changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what a new object brings along."""
    made = {change["identity"] for change in changes if change["op"] == "create" and change["parent"] is None}
    made |= {c["identity"] for c in changes if c["op"] == "create" and c["kind"] in ("table", "type", "view")}
    along = ("column", "constraint", "enum_value", "grant")
    return [
        change
        for change in changes
        if not (change["op"] == "create" and change["kind"] in along and change["parent"] in made)
    ]


def _section(name: str, lines: list[str], most: int = 200) -> Iterator[str]:
    if lines:
        yield ""
        yield name
        yield from (f"  {line}" for line in lines[:most])
        if len(lines) > most:
            yield f"  … and {len(lines) - most} more"


def _change(change: dict[str, Any]) -> str:
    what = ""
    if change["op"] == "alter":
        what = "  " + ", ".join(
            f"{name}: {_short(change['before'][name])} → {_short(change['after'][name])}"
            for name in change["after"]
        )
    return f"{_MARKS[change['op']]} {change['kind']} {change['identity']}{what}"


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 40 else text[:39] + "…"


def _lint(lint: dict[str, Any]) -> str:
    place = f"{lint['file']}:{lint['line']} " if lint["file"] else ""
    return f"{lint['level']:5} {place}{lint['rule']}: {lint['message']}; {lint['remedy']}"


def _lock(lock: dict[str, Any]) -> str:
    rows = "" if lock["had_rows"] else ", was empty"
    return (
        f"{lock['relation']}  {lock['mode']} (blocks {lock['blocks']})"
        f" for {lock['held_ms']:.1f} ms here{rows}  {lock['file']}:{lock['line']}"
    )


def _rows(rows: dict[str, Any]) -> str:
    changed = ", ".join(
        f"{rows[what]} {what}" for what in ("inserted", "updated", "deleted") if rows.get(what)
    )
    before, after = rows["rows_before"], rows["rows_after"]
    counts = f"{'-' if before is None else before} → {'gone' if after is None else after}"
    return f"{rows['relation']}  {counts}  {changed}".rstrip()


def _exposed(each: dict[str, Any]) -> str:
    roles = "; ".join(
        f"{role}: "
        + ", ".join(f"{action} {how}" for action, how in sorted(actions.items()) if action != "truncate")
        for role, actions in sorted(each["roles"].items())
    )
    seen = "served" if each["schema_exposed"] else "not served by the API"
    guard = f"row level security {'on' if each['rls'] else 'off'}"
    return f"{each['relation']}  {seen}, {guard}; {roles}"


def as_markdown(report: dict[str, Any]) -> str:
    """The same for a pull request: findings and changes as tables, the rest folded."""
    head = "✅ applied" if report["result"] == "applied" else "❌ failed"
    lines = [
        f"### Migration test: {head} on Postgres {report['server']} in {report['duration_ms']:.0f} ms",
        "",
    ]
    failure = report["failure"]
    if failure:
        lines += [
            f"**`{failure['file']}:{failure['line']}`** {failure['message']} ({failure['sqlstate']})",
            "",
            "```",
            *str(failure["excerpt"] or "").split("\n"),
            "```",
            f"{failure['remedy']}",
            "",
        ]
    new = [lint for lint in report["lints"] if lint["new"]]
    if new:
        lines += ["| level | where | finding | instead |", "|---|---|---|---|"]
        for lint in new:
            place = f"`{lint['file']}:{lint['line']}`" if lint["file"] else f"`{lint['object']}`"
            lines.append(
                f"| {lint['level']} | {place} | {_cell(lint['message'])} | {_cell(lint['remedy'])} |"
            )
        lines.append("")
    changes = [_change(change) for change in report["schema_diff"]]
    if changes:
        lines += [f"<details><summary>{len(changes)} changes</summary>", "", "```diff", *changes, "```"]
        lines += ["</details>", ""]
    for name, found in (
        ("locks", [_lock(lock) for lock in report["locks"]]),
        ("rows", [_rows(rows) for rows in report["data"]]),
        ("who may what", [_exposed(each) for each in report["exposure"] if each["changed"]]),
    ):
        if found:
            lines += [f"<details><summary>{name}</summary>", "", "```", *found, "```", "</details>", ""]
    replay = report["replay"]
    lines.append(
        f"Replay from zero: {replay['from_zero'] or '-'}; second run: {replay['second_run'] or '-'};"
        f" schema `{str(replay['hash'])[:16]}`."
    )
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
