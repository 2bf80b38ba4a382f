"""What backend is wanted: the options that `run` and `lease create` share, and the project's files."""

from __future__ import annotations

import os

from toft.cli.argv import Flag
from toft.errors.daemon import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context
    from toft.protocol.bundle import Bundle
    from toft.protocol.plain_json import Json

FLAGS = (
    Flag("ttl", "How long it lives without being renewed (30m).", "TIME"),
    Flag("label", "A name of your own for it.", "TEXT"),
    Flag("dir", "The project's folder, if not this one or one above.", "DIR"),
    Flag("migrations", "Another folder of migrations than supabase/migrations.", "DIR"),
    Flag("include-all", "Also apply migrations older than the newest applied one."),
    Flag("no-migrations", "Do not apply migrations."),
    Flag("no-seed", "Do not run the seeds."),
    Flag("port", "The port of its API, instead of any free one.", "PORT"),
    Flag("db-port", "The port of its database.", "PORT"),
)


def read_wish(context: Context) -> dict[str, Json]:
    """The options as members of `protocol.lease.CreateLease`."""
    arguments = context.arguments
    return {
        "ttl_seconds": context.settings.ttl,
        "label": arguments.get("label") or "",
        "http_port": _port(context, "port"),
        "db_port": _port(context, "db-port"),
        "include_all": arguments.has("include-all"),
        "no_migrations": arguments.has("no-migrations"),
        "no_seed": arguments.has("no-seed"),
        "migrations_dir": migrations_folder(context),
    }


def _port(context: Context, name: str) -> int | None:
    text = context.arguments.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 65536):
        raise UsageError(
            command=context.usage.name, cause=f"`--{name} {text}`: a port is between 1 and 65535"
        )
    return int(text)


def _root(context: Context) -> str | None:
    from toft.client.project import find_project

    folder = context.arguments.get("dir")
    if folder is None:
        return find_project(".")
    if not os.path.isdir(folder):
        raise UsageError(command=context.usage.name, cause=f"`--dir {folder}`: there is no such folder")
    return os.path.realpath(folder) if os.path.isdir(folder + "/supabase") else None


def migrations_folder(context: Context) -> str | None:
    """The folder of migrations relative to the project's root, where one was named."""
    folder = context.arguments.get("migrations")
    if folder is None:
        return None
    root = _root(context) or os.path.realpath(".")
    if not os.path.isdir(folder):
        raise UsageError(
            command=context.usage.name, cause=f"`--migrations {folder}`: there is no such folder"
        )
    return os.path.relpath(folder, root)


def migrations_path(context: Context) -> str:
    """Where the project's migrations lie, or would."""
    from toft.protocol.bundle import MIGRATIONS

    root = _root(context) or os.path.realpath(".")
    return f"{root}/{migrations_folder(context) or MIGRATIONS}"


def read_bundle(context: Context) -> Bundle | None:
    """The project's files; None, and a note, where there is no project."""
    from toft.client.project import read_project

    root = _root(context)
    migrations = migrations_folder(context)
    if root is None and migrations is None:
        context.show.note("no supabase/ folder here: the backend is empty")
        return None
    root = root or os.path.realpath(".")
    if migrations is None:
        return read_project(root, context.environ)
    return read_project(root, context.environ, migrations)


def tell_notices(context: Context, lease: dict[str, Json]) -> None:
    """Say what the daemon found noteworthy about the project."""
    notices = lease.get("notices")
    for notice in notices if isinstance(notices, list) else ():
        context.show.note(str(notice))
