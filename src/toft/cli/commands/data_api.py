"""`toft data-api`: the Data API alone, in the foreground, over any Postgres."""

from __future__ import annotations

import sys

from toft.cli.argv import Flag, Usage
from toft.errors.daemon import UsageError
from toft.settings import parse_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context

#: option → the setting of PostgREST's that it stands for
_SETTINGS = {
    "db-uri": "db_uri",
    "schemas": "db_schemas",
    "anon-role": "db_anon_role",
    "host": "server_host",
    "port": "server_port",
    "admin-port": "admin_server_port",
}
USAGE = Usage(
    "toft data-api",
    "Serve a Postgres from 13 on as PostgREST does, without the rest of Toft, until SIGTERM.\n"
    "Options win over the PGRST_ variables that PostgREST reads, those over the file; keep\n"
    "passwords in PGRST_DB_URI, or in a file named by `@PATH` there.",
    (
        Flag("db-uri", "The database: postgresql://USER:PASSWORD@HOST:PORT/NAME.", "URL"),
        Flag("schemas", "The schemas to serve, the first one by default (public).", "NAMES"),
        Flag("anon-role", "The role of requests without a token; without it they are refused.", "ROLE"),
        Flag("host", "The address to listen on (127.0.0.1; `*` for all).", "ADDRESS"),
        Flag("port", "The port of the API (3000; 0 for a free one).", "PORT"),
        Flag("admin-port", "A port for /live, /ready, /metrics, /schema_cache (none).", "PORT"),
        Flag("max-body", "The largest body of a request (64M).", "SIZE"),
        Flag("explain", "Let refusals say why in their hint: policies, privileges, indexes."),
        Flag("config", "A configuration file as PostgREST reads it.", "FILE"),
    ),
    examples=("PGRST_JWT_SECRET=… toft data-api --db-uri postgresql://web@localhost/app --anon-role anon",),
)


def _size(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise UsageError(command=USAGE.name, cause=f"`--max-body`: {error}") from None


def main(context: Context) -> int:
    """Returns when it was told to end."""
    import logging

    from toft.errors.data_api import DataApiDatabase, DataApiPlace, DataApiSetting
    from toft.rest.alone.database import DatabaseRefuses
    from toft.rest.alone.serve import CannotListen, collect_values, run
    from toft.rest.alone.settings import BadSetting

    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
    arguments, show = context.arguments, context.show
    given = {
        setting: value
        for option, setting in _SETTINGS.items()
        if (value := arguments.get(option)) is not None
    }

    if arguments.has("explain"):
        given["toft_explain"] = "true"
    if (size := arguments.get("max-body")) is not None:
        given["toft_max_body"] = str(_size(size))

    def tell(place: str, admin: str | None) -> None:
        if show.is_json:
            show.data({"listening": place, "admin": admin})
        else:
            show.text(f"listening on {place}\n")
            if admin is not None:
                show.text(f"admin port on {admin}\n")
        sys.stdout.flush()

    try:
        run(collect_values(arguments.get("config"), context.environ, given), tell)
    except BadSetting as error:
        raise DataApiSetting(cause=str(error)) from None
    except CannotListen as error:
        raise DataApiPlace(place=error.place, cause=error.cause) from None
    except DatabaseRefuses as error:
        raise DataApiDatabase(cause=str(error)) from None
    return 0
