"""`toft run -- CMD`: a lease, the command with its variables, the lease back, the command's exit status."""

from __future__ import annotations

from toft import settings as options
from toft.cli import child, wish
from toft.cli.argv import Flag, Usage
from toft.client.backend import take_lease
from toft.client.hold import Hold
from toft.errors.shape import ToftError
from toft.protocol import environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context
    from toft.protocol.plain_json import Json

USAGE = Usage(
    "toft run",
    "Run a command with a Supabase-compatible backend of its own: migrated, seeded, in the\n"
    "environment (SUPABASE_URL, DATABASE_URL, …), and gone when the command ends.",
    (
        *wish.FLAGS,
        Flag("keep-on-failure", "Keep the backend until its TTL when the command fails."),
        Flag("watch-migrations", "Apply migrations that are added or changed while it runs."),
    ),
    "-- CMD [ARG…]",
    takes_command=True,
    examples=("toft run -- npm run dev", "toft run --ttl 10m --keep-on-failure -- ./my-agent.sh"),
)


def main(context: Context) -> int:
    """Exit with the command's status; 125, 126, 127 are failures of ours, as shells reserve them."""
    command = context.arguments.rest
    path = child.find_command(command[0], context.environ)
    bundle = wish.read_bundle(context)
    daemon = context.daemon()
    lease, stream = take_lease(daemon, wish.read_wish(context), bundle, context.show.progress)
    wish.tell_notices(context, lease)
    hold = Hold(
        stream,
        str(lease["id"]),
        str(lease["credential"]),
        context.settings,
        context.environ,
        options.python(),
    )
    variables = environment.apply(context.environ, lease)
    watcher = _watch_migrations(context, lease) if context.arguments.has("watch-migrations") else None
    status = child.run(command, path, variables, hold, context.show.warning)
    if watcher is not None:
        child.end(watcher)
    if status != 0 and context.arguments.has("keep-on-failure"):
        _keep(context, lease)
    hold.close()
    return child.end_as(status)


def _watch_migrations(context: Context, lease: dict[str, Json]) -> int:
    """A `toft db push --watch` of this lease beside the command; its pid."""
    python = options.python()
    words = [python, "-P", "-m", "toft.cli.main", "db", "push", "--watch", str(lease["id"])]
    for name in ("dir", "migrations"):
        value = context.arguments.get(name)
        if value is not None:
            words += [f"--{name}", value]
    return child.spawn_beside(words, context.environ)


def _keep(context: Context, lease: dict[str, Json]) -> None:
    """Let go of the lease without ending it, and say how to look at it."""
    message: Json = {
        "credential": lease["credential"],
        "ttl_seconds": lease["ttl_seconds"],
        "hold": False,
    }
    try:
        kept = context.daemon().call("POST", f"/v1/leases/{lease['id']}/renew", message)
    except ToftError as error:
        context.show.error(error)
        return
    name = kept["id"]
    context.show.note(f"the command failed; its backend {kept['url']} stays until {kept['expires_at']}")
    context.show.note(
        f"look at it: `toft psql {name}`, `toft lease env {name}`; end it: `toft lease release {name}`"
    )
