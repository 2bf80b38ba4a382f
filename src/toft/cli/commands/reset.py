"""`toft reset [LEASE]`: a lease's backend as it was just after migrations and seeds."""

from __future__ import annotations

from toft.cli.argv import Usage
from toft.cli.leases import find_lease, named_lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context

USAGE = Usage(
    "toft reset",
    "Return a backend to just after migrations and seeds. URL, keys and passwords stay; open SQL\n"
    "sessions end. The files are those that the lease began with.",
    (),
    "[LEASE]",
    most=1,
)


def main(context: Context) -> int:
    """Reset, and say how long it took."""
    daemon = context.daemon()
    lease_id = find_lease(context, daemon, named_lease(context))
    answer = daemon.call("POST", f"/v1/leases/{lease_id}/reset", patience_seconds=None)
    if context.show.is_json:
        context.show.data(answer)
    else:
        context.show.text(f"{lease_id} is as it was at the start ({answer['took_ms']:.0f} ms)\n")
    return 0
