"""`toft lease create|list|show|env|renew|release`: leases that no command holds."""

from __future__ import annotations

from toft.cli import wish
from toft.cli.argv import Flag, Usage
from toft.cli.leases import find_lease, list_leases, named_lease, show_lease
from toft.client.backend import create_lease
from toft.errors.daemon import UsageError
from toft.protocol import environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context
    from toft.protocol.plain_json import Json

_TTL = Flag("ttl", "How long from now (30m).", "TIME")
_FORMATS = ("dotenv", "shell", "json")


def create(context: Context) -> int:
    """Take a lease that only its time, or `release`, ends."""
    bundle = wish.read_bundle(context)
    lease = create_lease(context.daemon(), wish.read_wish(context), bundle)
    wish.tell_notices(context, lease)
    if context.show.is_json:
        context.show.data(lease)
    else:
        _print(context, lease)
    return 0


def list_all(context: Context) -> int:
    """The live leases."""
    leases = list_leases(context.daemon())
    if context.show.is_json:
        context.show.data({"leases": leases})
    elif not leases:
        context.show.note("no leases")
    else:
        rows = [
            [
                str(lease["id"]),
                str(lease["label"] or "-"),
                str(lease["state"]),
                "yes" if lease["held"] else "no",
                str(lease["expires_at"]),
                str(lease["url"]),
            ]
            for lease in leases
        ]
        context.show.table(["LEASE", "LABEL", "STATE", "HELD", "EXPIRES", "URL"], rows)
    return 0


def show(context: Context) -> int:
    """One lease. Secrets only as JSON: a screen is seen by others."""
    lease = show_lease(context, context.daemon(), named_lease(context))
    if context.show.is_json:
        context.show.data(lease)
    else:
        _print(context, lease)
    return 0


def env(context: Context) -> int:
    """The variables that a command would find."""
    form = context.arguments.get("format") or ("json" if context.show.is_json else "dotenv")
    if form not in _FORMATS:
        raise UsageError(command=context.usage.name, cause=f"`--format` takes one of {', '.join(_FORMATS)}")
    values = environment.variables(show_lease(context, context.daemon(), named_lease(context)))
    if form == "json":
        context.show.data(values)
    elif form == "shell":
        context.show.text(environment.as_shell(values))
    else:
        context.show.text(environment.as_dotenv(values))
    return 0


def renew(context: Context) -> int:
    """Let a lease live longer, or less long."""
    daemon = context.daemon()
    lease_id = find_lease(context, daemon, named_lease(context))
    message: Json = {"ttl_seconds": context.settings.ttl}
    credential = context.arguments.get("credential") or context.environ.get("TOFT_LEASE_CREDENTIAL")
    if credential:
        message["credential"] = credential
    lease = daemon.call("POST", f"/v1/leases/{lease_id}/renew", message)
    if context.show.is_json:
        context.show.data(lease)
    else:
        context.show.text(f"{lease['id']} lives until {lease['expires_at']}\n")
    return 0


def release(context: Context) -> int:
    """End a lease now."""
    daemon = context.daemon()
    lease_id = find_lease(context, daemon, named_lease(context))
    daemon.call("DELETE", f"/v1/leases/{lease_id}")
    if context.show.is_json:
        context.show.data({"released": lease_id})
    else:
        context.show.text(f"{lease_id} released\n")
    return 0


def _print(context: Context, lease: dict[str, Json]) -> None:
    name = str(lease["id"])
    context.show.facts(
        [
            ("lease", name),
            ("label", str(lease["label"] or "-")),
            ("api", str(lease["url"])),
            ("database", f"{lease['host']}:{lease['db_port']}"),
            ("state", str(lease["state"])),
            ("expires", str(lease["expires_at"])),
        ]
    )
    context.show.note(
        f'`toft lease env {name}` prints its variables, `eval "$(toft lease env --format shell)"` sets them'
    )


_LEASE = "[LEASE]"
USAGE = {
    "create": (
        Usage(
            "toft lease create",
            "Take a backend that lives until its time is over or `toft lease release`.",
            wish.FLAGS,
        ),
        create,
    ),
    "list": (Usage("toft lease list", "List the live leases."), list_all),
    "show": (
        Usage(
            "toft lease show",
            "Show a lease, by id or label; as JSON with its secrets.",
            (),
            _LEASE,
            most=1,
        ),
        show,
    ),
    "env": (
        Usage(
            "toft lease env",
            "Print a lease's variables, secrets included.",
            (Flag("format", "dotenv (default), shell or json.", "FORMAT"),),
            _LEASE,
            most=1,
            examples=('eval "$(toft lease env --format shell)"', "toft lease env > .env.test"),
        ),
        env,
    ),
    "renew": (
        Usage(
            "toft lease renew",
            "Let a lease live for a time from now.",
            (_TTL, Flag("credential", "The credential that `create` returned.", "TEXT")),
            _LEASE,
            most=1,
        ),
        renew,
    ),
    "release": (Usage("toft lease release", "End a lease now.", (), _LEASE, most=1), release),
}
