"""`toft explain`: one request of the Data API as anon, as users and as service_role, side by side."""

from __future__ import annotations

import json

from toft.cli.argv import Flag, Usage
from toft.cli.leases import show_lease
from toft.client.trials import Trial, matrix, try_out
from toft.errors.daemon import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toft.cli.context import Context

_METHODS = ("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE")
_SHOWN_ROWS = 50
_WIDTH = 72
USAGE = Usage(
    "toft explain",
    "Try one request of the Data API as anon, as each of the users, and as service_role; show who\n"
    "sees which rows, who is refused, and the privilege or policy that decides. Nothing of it stays.",
    (
        Flag("users", "Users by e-mail, phone or id, with commas between.", "NAMES"),
        Flag("body", "The body of a POST, PATCH or PUT.", "JSON"),
        Flag("prefer", "The Prefer header (return=representation).", "TEXT"),
        Flag("schema", "The schema, if it is not the first exposed one.", "NAME"),
        Flag("lease", "Which one, by id or label, if there are several.", "LEASE"),
    ),
    "[METHOD] PATH",
    least=1,
    most=2,
    examples=(
        "toft explain '/todos?select=id,title' --users ada@example.com,eve@example.com",
        'toft explain POST /todos --body \'{"title": "x"}\' --users ada@example.com',
    ),
)


def main(context: Context) -> int:
    """Shows the comparison; refusals are answers, so the status is 0."""
    arguments = context.arguments
    *methods, target = arguments.operands
    method = methods[0].upper() if methods else "GET"
    if method not in _METHODS:
        raise UsageError(command=USAGE.name, cause=f"`{method}` is no method of the Data API")
    users = [name for name in (part.strip() for part in (arguments.get("users") or "").split(",")) if name]
    lease = show_lease(context, context.daemon(), arguments.get("lease"))
    trials = try_out(dict(lease), users, method, target, _body(context), _headers(context))
    if context.show.is_json:
        trying = [trial.to_json() for trial in trials]
        context.show.data({"method": method, "path": target, "trials": trying})
    else:
        _print(context, trials)
    return 0


def _body(context: Context) -> object:
    text = context.arguments.get("body")
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        raise UsageError(command=USAGE.name, cause="`--body` takes JSON") from None


def _headers(context: Context) -> dict[str, str]:
    headers: dict[str, str] = {}
    prefer, schema = context.arguments.get("prefer"), context.arguments.get("schema")
    if prefer is not None:
        headers["prefer"] = prefer
    if schema is not None:
        headers |= {"accept-profile": schema, "content-profile": schema}
    return headers


def _print(context: Context, trials: Sequence[Trial]) -> None:
    show = context.show
    show.table(["AS", "STATUS", "OUTCOME"], [[t.caller, str(t.status), t.outcome] for t in trials])
    rows, marks = matrix(trials)
    if rows:
        show.text("\n")
        head = ["ROW", *(trial.caller for trial in trials)]
        cells = [
            [_short(row), *("x" if is_seen else "-" for is_seen in seen)]
            for row, seen in list(zip(rows, marks, strict=True))[:_SHOWN_ROWS]
        ]
        show.table(head, cells)
        if len(rows) > _SHOWN_ROWS:
            show.note(f"{len(rows) - _SHOWN_ROWS} rows more; `--json` shows them all")
    reasons = [(trial.caller, trial.reason) for trial in trials if trial.reason]
    if reasons:
        show.text("\n")
        show.facts(reasons)


def _short(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
