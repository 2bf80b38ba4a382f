"""`toft logs [LEASE]`: why something in a lease failed, by its services and its Postgres."""

from __future__ import annotations

import time

from toft.cli.argv import Flag, Usage
from toft.cli.leases import find_lease, named_lease
from toft.errors.daemon import UsageError
from toft.errors.lease import LeaseEnded, LeaseNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context
    from toft.client.backend import Daemon
    from toft.protocol.plain_json import Json

_USUAL_LINES = 200
_PAUSE_SECONDS = 0.5

USAGE = Usage(
    "toft logs",
    "Say why something failed: triggers, hooks, providers and statements, with their true cause.",
    (
        Flag("lines", "How many of the last lines (200).", "COUNT", short="n"),
        Flag("follow", "Go on until the lease ends.", short="f"),
    ),
    "[LEASE]",
    most=1,
)


def main(context: Context) -> int:
    """Print the last lines, and with --follow those that come."""
    count = context.arguments.get("lines") or str(_USUAL_LINES)
    if not (count.isascii() and count.isdigit() and len(count) < 7):
        raise UsageError(command=USAGE.name, cause=f"`--lines {count}`: it takes a number")
    daemon = context.daemon()
    lease = find_lease(context, daemon, named_lease(context))
    shown = _lines(daemon, lease)
    _print(context, shown[max(0, len(shown) - int(count)) :])
    if not shown and not context.arguments.has("follow"):
        context.show.note("nothing has failed")
    while context.arguments.has("follow"):
        time.sleep(_PAUSE_SECONDS)
        try:
            lines = _lines(daemon, lease)
        except (LeaseEnded, LeaseNotFound):
            break
        _print(context, [line for line in lines if line not in shown])
        shown = lines
    return 0


def _lines(daemon: Daemon, lease: str) -> list[dict[str, Json]]:
    lines = daemon.call("GET", f"/v1/leases/{lease}/log")["lines"]
    return [line for line in lines if isinstance(line, dict)] if isinstance(lines, list) else []


def _print(context: Context, lines: list[dict[str, Json]]) -> None:
    for line in lines:
        if context.show.is_json:
            context.show.data(line)
        else:
            context.show.text(f"{line['at']} {line['source']}: {line['text']}\n")
    context.show.flush()
