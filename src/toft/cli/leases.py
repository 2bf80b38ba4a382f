"""Which lease is meant: by its id, by its label, by where one is, or because there is only one."""

from __future__ import annotations

from toft.errors.lease import LeaseAmbiguous, LeaseNotFound
from toft.protocol import plain_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context
    from toft.client.backend import Daemon
    from toft.protocol.plain_json import Json


def list_leases(daemon: Daemon) -> list[dict[str, Json]]:
    """The live leases, oldest first, without their secrets."""
    leases = daemon.call("GET", "/v1/leases")["leases"]
    return [plain_json.as_object(lease) for lease in leases] if isinstance(leases, list) else []


def named_lease(context: Context) -> str | None:
    """What the first operand says, for commands whose operand is a lease."""
    return context.arguments.operands[0] if context.arguments.operands else None


def find_lease(context: Context, daemon: Daemon, name: str | None) -> str:
    """The id of the lease that is named.

    Without a name: the lease of the `toft run` that this runs under, else the only live one.
    """
    if name is None and context.environ.get("TOFT_INSTANCE_ID"):
        return context.environ["TOFT_INSTANCE_ID"]
    leases = list_leases(daemon)
    if name is not None:
        leases = [lease for lease in leases if lease["id"] == name] or [
            lease for lease in leases if lease["label"] == name
        ]
        if not leases and name.startswith("l_") and name[2:].isalnum() and name.isascii():
            daemon.call("GET", f"/v1/leases/{name}")  # of one that has ended it knows why
        if not leases:
            raise LeaseNotFound(lease=name)
    if len(leases) == 1:
        return str(leases[0]["id"])
    if leases:
        raise LeaseAmbiguous(count=len(leases))
    raise LeaseNotFound(lease="")


def show_lease(context: Context, daemon: Daemon, name: str | None) -> dict[str, Json]:
    """The lease that is meant, with all that its holder needs."""
    return daemon.call("GET", f"/v1/leases/{find_lease(context, daemon, name)}")
