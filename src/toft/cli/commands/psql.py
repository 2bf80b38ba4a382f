"""`toft psql [LEASE]`: psql on a lease's database, in our place."""

from __future__ import annotations

import os

from toft.cli.argv import Usage
from toft.cli.child import find_command
from toft.cli.leases import named_lease, show_lease
from toft.errors.daemon import CommandNotFound
from toft.protocol import environment, plain_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context
    from toft.client.backend import Daemon

USAGE = Usage(
    "toft psql",
    "Open psql on a lease's database as `postgres`. What follows `--` goes to psql.",
    (),
    "[LEASE] [-- PSQL-OPTION…]",
    most=1,
    examples=("toft psql", "toft psql -- -c 'select * from todos'"),
)


def main(context: Context) -> int:
    """Become psql; its status is ours."""
    daemon = context.daemon()
    lease = show_lease(context, daemon, named_lease(context))
    variables = environment.apply(context.environ, lease)
    path = _find_psql(context, daemon)
    os.execve(path, ["psql", *context.arguments.rest], variables)


def _find_psql(context: Context, daemon: Daemon) -> str:
    try:
        return find_command("psql", context.environ)
    except CommandNotFound:
        engines = daemon.call("GET", "/v1/engines").get("engines")
        for engine in engines if isinstance(engines, list) else ():
            path = f"{plain_json.as_object(engine)['bin_dir']}/psql"
            if os.access(path, os.X_OK):
                return path
        raise
