"""`toft bench`: what Toft costs on this machine, beside a floor."""

from __future__ import annotations

from toft.cli.argv import Flag, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context

USAGE = Usage(
    "toft bench",
    "Measure Toft on this machine: backend, api, auth, density, fork; all of them without a name.",
    (Flag("quick", "Fewer rounds: a first look."),),
    "[NAME…]",
    most=8,
    examples=("toft bench backend", "toft bench api --json"),
)


def main(context: Context) -> int:
    """Imported only here: the benches bring all of Toft along."""
    from toft.bench import main as bench

    return bench.run(
        context.arguments.operands, is_json=context.show.is_json, is_quick=context.arguments.has("quick")
    )
