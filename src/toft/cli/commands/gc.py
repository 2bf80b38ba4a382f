"""`toft gc`: throw away what nothing uses."""

from __future__ import annotations

from toft.cli.argv import Flag, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context

USAGE = Usage(
    "toft gc",
    "Throw away what nothing uses: leftovers of crashes, and templates beyond the limits.",
    (Flag("templates", "Also all cached templates that no live backend came from."),),
)


def main(context: Context) -> int:
    """The daemon does it; says how much there was."""
    message = {"templates": context.arguments.has("templates")}
    collected = context.daemon().call("POST", "/v1/gc", {**message}, patience_seconds=None)
    if context.show.is_json:
        context.show.data(collected)
    else:
        context.show.facts([(name, str(count)) for name, count in collected.items()])
    return 0
