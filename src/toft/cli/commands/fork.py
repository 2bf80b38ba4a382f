"""`toft fork [LEASE]`: leases on copies of a lease's backend, as it is now."""

from __future__ import annotations

from toft.cli.argv import Flag, Usage
from toft.cli.leases import find_lease, named_lease
from toft.errors.daemon import UsageError
from toft.protocol import plain_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context

USAGE = Usage(
    "toft fork",
    "Copy a running backend with everything in it: rows, users, sessions, files, settings. Each\n"
    "copy is a lease with keys, passwords and ports of its own; the original goes on.",
    (
        Flag("count", "How many copies (1), all of the same moment.", "COUNT", short="n"),
        Flag("ttl", "How long they live without being renewed (30m).", "TIME"),
        Flag("label", "A name of your own for them.", "TEXT"),
    ),
    "[LEASE]",
    most=1,
    examples=("toft fork", "toft fork my-lease -n 5 --label try"),
)


def main(context: Context) -> int:
    """Fork, and show what came of it."""
    daemon = context.daemon()
    lease_id = find_lease(context, daemon, named_lease(context))
    answer = daemon.call(
        "POST",
        f"/v1/leases/{lease_id}/fork",
        {
            "count": _count(context),
            "ttl_seconds": context.settings.ttl,
            "label": context.arguments.get("label") or "",
        },
        patience_seconds=None,
    )
    if context.show.is_json:
        context.show.data(answer)
        return 0
    forks = answer["forks"]
    rows = [
        [str(fork["id"]), str(fork["label"] or "-"), str(fork["expires_at"]), str(fork["url"])]
        for fork in map(plain_json.as_object, forks if isinstance(forks, list) else ())
    ]
    context.show.table(["LEASE", "LABEL", "EXPIRES", "URL"], rows)
    context.show.note(
        f"{lease_id} stood still for {answer['pause_ms']:.0f} ms; {_size(answer['bytes'])} in"
        f" {answer['took_ms']:.0f} ms; `toft lease env {rows[0][0]}` prints a fork's variables"
    )
    return 0


def _count(context: Context) -> int:
    text = context.arguments.get("count") or "1"
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise UsageError(command=context.usage.name, cause=f"`--count {text}`: a number of forks, like 5")
    return int(text)


def _size(count: object) -> str:
    return f"{count / (1 << 20):.0f} MiB" if isinstance(count, int | float) else "-"
