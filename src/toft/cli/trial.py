"""`toft db test-migration`: a migration tried out on a copy that is thrown away."""

from __future__ import annotations

import asyncio
import os
import re

from toft.cli import wish
from toft.cli.leases import find_lease
from toft.cli.push import push_once
from toft.client.backend import create_lease
from toft.database import open as databases
from toft.database.catalogue import Catalogue, read_catalogue
from toft.database.compare import compare
from toft.database.finding import LEVELS
from toft.database.history import mark_reverted
from toft.database.trial import State, make_report, read_state
from toft.database.trial_text import as_markdown, as_text
from toft.errors.daemon import UsageError
from toft.errors.database import FindingsRefused
from toft.errors.shape import ToftError
from toft.migrate.project import Options, SqlFile, read_project
from toft.protocol import plain_json
from toft.protocol.bundle import MIGRATIONS, Bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toft.cli.context import Context
    from toft.client.backend import Daemon
    from toft.protocol.plain_json import Json

_FORMATS = ("text", "markdown", "json")
_NAME = re.compile(r"[0-9]+_.*\.sql")
_TTL_SECONDS = 900.0


def test_migration(context: Context) -> int:
    """Try it, show the report; the exit status is 1 when it failed or found what `--fail-on` names."""
    form = context.arguments.get("format") or ("json" if context.show.is_json else "text")
    level = context.arguments.get("fail-on") or "none"
    if form not in _FORMATS:
        raise UsageError(command=context.usage.name, cause=f"`--format` takes one of {', '.join(_FORMATS)}")
    if level not in (*LEVELS, "none"):
        raise UsageError(
            command=context.usage.name, cause=f"`--fail-on` takes one of none, {', '.join(LEVELS)}"
        )
    report = _Trial(context).run()
    if form == "json":
        context.show.data(report)
    else:
        context.show.text(as_text(report) if form == "text" else as_markdown(report))
    if report["result"] == "failed":
        return 1
    serious = [
        lint
        for lint in report["lints"]
        if lint["new"] and level != "none" and LEVELS.index(lint["level"]) >= LEVELS.index(level)
    ]
    if serious:
        raise FindingsRefused(count=len(serious), level=level)
    return 0


class _Trial:
    """One trial, and the leases that it takes and gives back."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._daemon: Daemon = context.daemon()
        bundle = wish.read_bundle(context)
        if bundle is None:
            raise UsageError(command=context.usage.name, cause="there is no supabase/ folder here")
        self._folder = wish.migrations_folder(context) or MIGRATIONS
        self._tried, files = _named_files(context, bundle, self._folder)
        self._bundle = Bundle({**bundle.files, **files}, bundle.env)
        self._taken: list[str] = []

    def run(self) -> dict[str, Any]:
        show = self._context.show
        try:
            show.progress("making the copy to try it on")
            lease = self._copy()
            project = read_project(self._bundle, Options(migrations_dir=self._folder))
            exposed = project.config.services.rest.schemas
            show.progress("looking at it")
            before, versions = asyncio.run(_before(lease, exposed))
            show.progress("applying")
            pushed = self._push(lease)
            after = asyncio.run(_state(lease, exposed))
            pending = [file for file in project.migrations if file.version not in versions]
            files: list[SqlFile] = [*pending]
            report = make_report(before, after, files, pushed)
            report["lease"] = self._context.arguments.get("data")
            if report["result"] == "applied":
                show.progress("trying it from zero, and a second time")
                report["replay"]["from_zero"] = self._from_zero(after.catalogue)
                report["replay"]["second_run"] = self._second_run(lease, [file.version for file in pending])
            return report
        finally:
            for lease_id in self._taken:
                self._daemon.call("DELETE", f"/v1/leases/{lease_id}")

    def _copy(self) -> dict[str, Json]:
        """A fork of the lease with the data, or a fresh lease without the files that are tried."""
        data = self._context.arguments.get("data")
        if data is not None:
            return self._fork(find_lease(self._context, self._daemon, data))
        if not self._tried:
            return self._lease(self._bundle, no_migrations=True, no_seed=True)
        kept = {path: raw for path, raw in self._bundle.files.items() if path not in self._tried}
        return self._lease(Bundle(kept, self._bundle.env))

    def _lease(self, bundle: Bundle, **more: Json) -> dict[str, Json]:
        message: dict[str, Json] = {
            "ttl_seconds": _TTL_SECONDS,
            "label": "test-migration",
            "migrations_dir": None if self._folder == MIGRATIONS else self._folder,
            **more,
        }
        lease = create_lease(self._daemon, message, bundle)
        self._taken.append(str(lease["id"]))
        return lease

    def _fork(self, lease_id: str) -> dict[str, Json]:
        answer = self._daemon.call(
            "POST",
            f"/v1/leases/{lease_id}/fork",
            {"ttl_seconds": _TTL_SECONDS, "label": "test-migration"},
            patience_seconds=None,
        )
        forks = answer["forks"]
        assert isinstance(forks, list)  # noqa: S101 -- the route says so
        fork = plain_json.as_object(forks[0])
        self._taken.append(str(fork["id"]))
        return fork

    def _push(self, lease: dict[str, Json], **more: Json) -> dict[str, Any]:
        return push_once(
            self._context, self._daemon, str(lease["id"]), self._bundle, watch=True, include_all=True, **more
        )

    def _from_zero(self, schema: Catalogue) -> str:
        """All files on an empty database."""
        try:
            lease = self._lease(self._bundle, no_seed=True)
        except ToftError as error:
            return f"fails: {error}"
        changes = compare(asyncio.run(_catalogue(lease)), schema)
        if not changes:
            return "ok"
        named = ", ".join(f"{change.kind} {change.identity}" for change in changes[:3])
        return f"ok, but {len(changes)} objects differ from here: {named}"

    def _second_run(self, lease: dict[str, Json], versions: list[str]) -> str:
        """The same files once more, as after a failure that left no history."""
        again = self._fork(str(lease["id"]))
        asyncio.run(_forget(again, versions))
        failure = self._push(again)["failure"]
        return "ok" if failure is None else f"fails: {failure['title']}"


def _named_files(context: Context, bundle: Bundle, folder: str) -> tuple[set[str], dict[str, bytes]]:
    """Paths in the bundle of the files that were named, and the bytes of those that lie elsewhere."""
    tried: set[str] = set()
    added: dict[str, bytes] = {}
    for path in context.arguments.operands:
        name = os.path.basename(path)
        if not _NAME.fullmatch(name):
            raise UsageError(
                command=context.usage.name, cause=f"`{name}` is no name of a migration: `<digits>_<name>.sql`"
            )
        inside = f"{folder}/{name}"
        tried.add(inside)
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            raise UsageError(
                command=context.usage.name, cause=f"`{path}`: {os.strerror(error.errno or 0)}"
            ) from None
        if bundle.files.get(inside) != content:
            added[inside] = content
    return tried, added


async def _before(lease: dict[str, Json], exposed: tuple[str, ...]) -> tuple[State, set[str]]:
    from toft.database.history import read_history

    session = await databases.open_lease(lease)
    try:
        return await read_state(session, exposed), {version for version, _ in await read_history(session)}
    finally:
        session.close()


async def _state(lease: dict[str, Json], exposed: tuple[str, ...]) -> State:
    session = await databases.open_lease(lease)
    try:
        return await read_state(session, exposed)
    finally:
        session.close()


async def _catalogue(lease: dict[str, Json]) -> Catalogue:
    session = await databases.open_lease(lease)
    try:
        return await read_catalogue(session)
    finally:
        session.close()


async def _forget(lease: dict[str, Json], versions: list[str]) -> None:
    session = await databases.open_lease(lease)
    try:
        for version in versions:
            await mark_reverted(session, version)
    finally:
        session.close()
