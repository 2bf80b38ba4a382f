"""`toft version`."""

from __future__ import annotations

from toft import __version__
from toft.cli.argv import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context

USAGE = Usage("toft version", "Print the version of this `toft`.")


def main(context: Context) -> int:
    """The daemon's own is in `toft daemon status`."""
    if context.show.is_json:
        context.show.data({"version": __version__})
    else:
        context.show.text(f"toft {__version__}\n")
    return 0
