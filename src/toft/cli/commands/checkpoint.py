"""`toft checkpoint create|list|restore|delete`: named points that a lease can return to."""

from __future__ import annotations

from toft.cli.argv import Flag, Usage
from toft.cli.leases import find_lease, named_lease
from toft.protocol import plain_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context
    from toft.client.backend import Daemon


def create(context: Context) -> int:
    """Keep what the backend is now."""
    daemon = context.daemon()
    lease_id = find_lease(context, daemon, named_lease(context))
    answer = daemon.call(
        "POST",
        f"/v1/leases/{lease_id}/checkpoints",
        {"name": context.arguments.get("name")},
        patience_seconds=None,
    )
    if context.show.is_json:
        context.show.data(answer)
    else:
        context.show.text(f"{answer['name']}\n")
        context.show.note(f"`toft checkpoint restore {answer['name']}` returns to it")
    return 0


def list_all(context: Context) -> int:
    """The checkpoints of a lease."""
    daemon = context.daemon()
    answer = daemon.call("GET", f"/v1/leases/{find_lease(context, daemon, named_lease(context))}/checkpoints")
    if context.show.is_json:
        context.show.data(answer)
        return 0
    found = answer["checkpoints"]
    rows = [
        [str(one["name"]), str(one["created_at"]), f"{_number(one['bytes']) / (1 << 20):.1f} MiB"]
        for one in map(plain_json.as_object, found if isinstance(found, list) else ())
    ]
    if rows:
        context.show.table(["CHECKPOINT", "CREATED", "SIZE"], rows)
    else:
        context.show.note("no checkpoints")
    return 0


def restore(context: Context) -> int:
    """Return to a checkpoint, in place."""
    daemon = context.daemon()
    name, lease_id = _name_and_lease(context, daemon)
    answer = daemon.call("POST", f"/v1/leases/{lease_id}/checkpoints/{name}/restore", patience_seconds=None)
    if context.show.is_json:
        context.show.data(answer)
    else:
        context.show.text(f"{lease_id} is as it was at {name} ({_number(answer['took_ms']):.0f} ms)\n")
    return 0


def delete(context: Context) -> int:
    """Forget a checkpoint."""
    daemon = context.daemon()
    name, lease_id = _name_and_lease(context, daemon)
    daemon.call("DELETE", f"/v1/leases/{lease_id}/checkpoints/{name}")
    if context.show.is_json:
        context.show.data({"deleted": name, "lease": lease_id})
    else:
        context.show.text(f"{name} deleted\n")
    return 0


def _name_and_lease(context: Context, daemon: Daemon) -> tuple[str, str]:
    from urllib.parse import quote

    name, lease = (*context.arguments.operands, None)[:2]
    return quote(name or "", safe=""), find_lease(context, daemon, lease)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


USAGE = {
    "create": (
        Usage(
            "toft checkpoint create",
            "Keep a lease's whole backend as it is now: rows, users, sessions, files.",
            (Flag("name", "Its name, instead of the next number.", "TEXT"),),
            "[LEASE]",
            most=1,
            examples=("toft checkpoint create --name before-import",),
        ),
        create,
    ),
    "list": (Usage("toft checkpoint list", "List a lease's checkpoints.", (), "[LEASE]", most=1), list_all),
    "restore": (
        Usage(
            "toft checkpoint restore",
            "Return to a checkpoint. URL, keys and passwords stay; open SQL sessions end.",
            (),
            "NAME [LEASE]",
            least=1,
            most=2,
        ),
        restore,
    ),
    "delete": (
        Usage("toft checkpoint delete", "Forget a checkpoint.", (), "NAME [LEASE]", least=1, most=2),
        delete,
    ),
}
