"""`toft db push` and `toft migration up`: pending migrations applied to a lease."""

from __future__ import annotations

import os

from toft.cli import wish
from toft.cli.argv import Flag
from toft.cli.leases import find_lease, named_lease
from toft.client import raises
from toft.client.push import push_project
from toft.errors.daemon import UsageError
from toft.protocol import plain_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toft.cli.context import Context
    from toft.client.backend import Daemon
    from toft.protocol.bundle import Bundle
    from toft.protocol.plain_json import Json


def push_flags(shared: Sequence[Flag]) -> tuple[Flag, ...]:
    """Its options; those that name the project's files are shared with `run`."""
    kept = [flag for flag in shared if flag.name in ("dir", "migrations", "include-all")]
    return (
        *kept,
        Flag("include-roles", "Run supabase/roles.sql before them."),
        Flag("include-seed", "Run seeds that have not run yet after them."),
        Flag("dry-run", "Only say what is pending."),
        Flag("timeout", "Cancel what runs after so many seconds (300).", "SECONDS"),
        Flag("watch", "Stay, and apply again whenever a migration is added or changed."),
    )


def push(context: Context) -> int:
    """Apply what is pending, and tell it; the exit status is 1 when a migration failed."""
    daemon = context.daemon()
    lease_id = find_lease(context, daemon, named_lease(context))
    if context.arguments.has("watch"):
        return _watch(context, daemon, lease_id)
    report = push_once(context, daemon, lease_id)
    failure = report["failure"]
    if context.show.is_json:
        context.show.data(report)
        return 0 if failure is None else 1
    _tell(context, report)
    if failure is not None:
        raise raises.from_problem(plain_json.as_object(failure))
    return 0


def push_once(
    context: Context, daemon: Daemon, lease_id: str, bundle: Bundle | None = None, **more: Json
) -> dict[str, Json]:
    """One run over the project as it lies there now, or over a bundle of it."""
    bundle = bundle or wish.read_bundle(context)
    if bundle is None:
        raise UsageError(command=context.usage.name, cause="there is no supabase/ folder here")
    arguments = context.arguments
    message: dict[str, Json] = {
        "include_all": arguments.has("include-all"),
        "include_roles": arguments.has("include-roles"),
        "include_seed": arguments.has("include-seed"),
        "dry_run": arguments.has("dry-run"),
        "migrations_dir": wish.migrations_folder(context),
        "timeout_seconds": _timeout(context),
        **more,
    }
    return push_project(daemon, lease_id, message, bundle)


def _timeout(context: Context) -> float:
    text = context.arguments.get("timeout") or "300"
    try:
        return float(text)
    except ValueError:
        raise UsageError(
            command=context.usage.name, cause=f"`--timeout {text}`: a number of seconds"
        ) from None


def _tell(context: Context, report: dict[str, Json]) -> None:
    for notice in _texts(report["notices"]):
        context.show.note(notice)
    is_dry = context.arguments.has("dry-run")
    done = [*_texts(report["pending"])] if is_dry else [*_texts(report["applied"]), *_texts(report["seeds"])]
    for path in done:
        context.show.text(f"{'pending' if is_dry else 'applied'} {path}\n")
    if not done and report["failure"] is None:
        context.show.text("up to date\n")


def _texts(value: Json) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _watch(context: Context, daemon: Daemon, lease_id: str) -> int:
    """Until interrupted, or until the lease ends. A file that fails is told, and tried when it changes."""
    from toft.client.watching import changes
    from toft.errors.lease import LeaseEnded, LeaseNotFound
    from toft.errors.shape import ToftError

    folder = wish.migrations_path(context)
    for _ in changes(folder):
        try:
            report = push_once(context, daemon, lease_id)
            failure = report["failure"]
            if report["applied"] or failure is not None:
                if context.show.is_json:
                    context.show.data(report)
                else:
                    for path in _texts(report["applied"]):
                        context.show.note(f"applied {os.path.basename(path)}")
            if failure is not None:
                context.show.error(raises.from_problem(plain_json.as_object(failure)))
        except (LeaseEnded, LeaseNotFound):
            return 0
        except ToftError as error:
            context.show.error(error)
    return 0
