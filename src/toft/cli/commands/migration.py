"""`toft migration list|new|up|repair`: the files under supabase/migrations and a lease's history of them."""

from __future__ import annotations

import asyncio
import os
import re
import time

from toft.cli import wish
from toft.cli.argv import Flag, Usage
from toft.cli.leases import find_lease, named_lease, show_lease
from toft.cli.push import push, push_flags
from toft.errors.daemon import UsageError
from toft.protocol.bundle import MIGRATIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from toft.cli.context import Context

_NAME = re.compile(r"([0-9]+)_(.*)\.sql")


def list_all(context: Context) -> int:
    """Local files and what the lease has of them, side by side."""
    local = _local(context)
    lease = show_lease(context, context.daemon(), named_lease(context))
    applied = dict(asyncio.run(_history(lease)))
    rows = [
        {
            "version": version,
            "name": local.get(version, applied.get(version)),
            "local": version in local,
            "applied": version in applied,
        }
        for version in sorted({*local, *applied})
    ]
    if context.show.is_json:
        context.show.data({"migrations": rows})
    elif not rows:
        context.show.note("no migrations")
    else:
        context.show.table(
            ["VERSION", "LOCAL", "APPLIED", "NAME"],
            [
                [
                    str(row["version"]),
                    "yes" if row["local"] else "-",
                    "yes" if row["applied"] else "-",
                    str(row["name"] or "-"),
                ]
                for row in rows
            ],
        )
    return 0


def new(context: Context) -> int:
    """An empty file with the time of now as its version."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", context.arguments.operands[0]).strip("_").lower()
    if not name:
        raise UsageError(command=context.usage.name, cause="a name has letters or digits")
    folder = _folder(context)
    os.makedirs(folder, exist_ok=True)
    version = time.strftime("%Y%m%d%H%M%S", time.gmtime())
    taken = {_NAME.fullmatch(entry) for entry in os.listdir(folder)}
    versions = {match[1] for match in taken if match}
    while version in versions:  # two within a second
        version = str(int(version) + 1)
    path = f"{folder}/{version}_{name}.sql"
    with open(path, "x", encoding="utf-8"):
        pass
    shown = os.path.relpath(path)
    if context.show.is_json:
        context.show.data({"path": shown, "version": version, "name": name})
    else:
        context.show.text(f"{shown}\n")
    return 0


def repair(context: Context) -> int:
    """Write into the history, or take out of it, without running anything."""
    status = context.arguments.get("status")
    if status not in ("applied", "reverted"):
        raise UsageError(command=context.usage.name, cause="`--status` takes `applied` or `reverted`")
    daemon = context.daemon()
    lease_id = find_lease(context, daemon, context.arguments.get("lease"))
    lease = daemon.call("GET", f"/v1/leases/{lease_id}")
    local = _local(context)
    for version in context.arguments.operands:
        if not version.isdigit() or (status == "applied" and version not in local):
            raise UsageError(
                command=context.usage.name, cause=f"`{version}` is no version of a file in {MIGRATIONS}"
            )
    files = {
        version: _read(context, version, local) for version in context.arguments.operands if version in local
    }
    asyncio.run(_repair(lease, context.arguments.operands, files, is_applied=status == "applied"))
    if context.show.is_json:
        context.show.data({"lease": lease_id, "status": status, "versions": context.arguments.operands})
    else:
        context.show.text(f"{', '.join(context.arguments.operands)}: {status}\n")
    return 0


def up(context: Context) -> int:
    """Apply what is pending."""
    return push(context)


async def _history(lease: Mapping[str, object]) -> list[tuple[str, str | None]]:
    from toft.database import open as databases
    from toft.database.history import read_history

    session = await databases.open_lease(lease)
    try:
        return await read_history(session)
    finally:
        session.close()


async def _repair(
    lease: Mapping[str, object], versions: list[str], files: dict[str, tuple[str, str]], *, is_applied: bool
) -> None:
    from toft.database import open as databases
    from toft.database.history import mark_applied, mark_reverted

    session = await databases.open_lease(lease)
    try:
        for version in versions:
            if is_applied:
                name, text = files[version]
                await mark_applied(session, version, name, text)
            else:
                await mark_reverted(session, version)
    finally:
        session.close()


def _folder(context: Context) -> str:
    from toft.client.project import find_project

    given = context.arguments.get("migrations")
    if given is not None:
        return given
    start = context.arguments.get("dir") or "."
    return f"{find_project(start) or os.path.realpath(start)}/{MIGRATIONS}"


def _local(context: Context) -> dict[str, str]:
    """Version → name of the files in the folder."""
    try:
        names = os.listdir(_folder(context))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    found = (_NAME.fullmatch(name) for name in names)
    return {match[1]: match[2] for match in found if match}


def _read(context: Context, version: str, local: dict[str, str]) -> tuple[str, str]:
    with open(f"{_folder(context)}/{version}_{local[version]}.sql", encoding="utf-8-sig") as file:
        return local[version], file.read()


_DIR = Flag("dir", "The project's folder, if not this one or one above.", "DIR")
_MIGRATIONS = Flag("migrations", "Another folder of migrations than supabase/migrations.", "DIR")
USAGE = {
    "list": (
        Usage(
            "toft migration list",
            "Files and a lease's history side by side.",
            (_DIR, _MIGRATIONS),
            "[LEASE]",
            most=1,
        ),
        list_all,
    ),
    "new": (
        Usage(
            "toft migration new",
            "Make an empty migration file.",
            (_DIR, _MIGRATIONS),
            "NAME",
            least=1,
            most=1,
        ),
        new,
    ),
    "up": (
        Usage(
            "toft migration up",
            "Apply pending migrations to a lease; the same as `toft db push`.",
            push_flags(wish.FLAGS),
            "[LEASE]",
            most=1,
        ),
        up,
    ),
    "repair": (
        Usage(
            "toft migration repair",
            "Correct a lease's history without running anything.",
            (
                Flag("status", "`applied` or `reverted`.", "STATUS"),
                Flag("lease", "Which lease, if there are several.", "LEASE"),
                _DIR,
                _MIGRATIONS,
            ),
            "VERSION…",
            least=1,
            most=1000,
        ),
        repair,
    ),
}
