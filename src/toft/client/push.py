"""A project's pending migrations, applied to a lease by the daemon."""

from __future__ import annotations

from toft.errors.project import ProjectUnknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from toft.client.backend import Daemon
    from toft.protocol.bundle import Bundle
    from toft.protocol.plain_json import Json


def push_project(daemon: Daemon, lease_id: str, wish: Mapping[str, Json], bundle: Bundle) -> dict[str, Json]:
    """`protocol.push.PushReport`, also when a migration failed. wish: members of `PushWish` but project."""
    digest = bundle.digest()
    message: Json = {**wish, "project": digest}
    path = f"/v1/leases/{lease_id}/push"
    try:
        return daemon.call("POST", path, message, patience_seconds=None)
    except ProjectUnknown:
        daemon.put_project(bundle, digest)
        return daemon.call("POST", path, message, patience_seconds=None)
