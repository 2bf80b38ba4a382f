"""`toft daemon start|stop|status|logs`: the process behind it all, by hand."""

from __future__ import annotations

import os
import select

from toft import __version__
from toft.cli.argv import Flag, Usage
from toft.client import launch
from toft.errors.daemon import DaemonLeft, DaemonNotRunning, DaemonStopping, DaemonUnreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context
    from toft.protocol.plain_json import Json

#: As service managers say that something is not running.
EXIT_NOT_RUNNING = 3
_STOP_SECONDS = 60


def start(context: Context) -> int:
    """Start it unless it runs."""
    _tell(context, context.daemon().call("GET", "/v1/hello"))
    return 0


def status(context: Context) -> int:
    """Whether it runs, and which."""
    try:
        _tell(context, context.daemon(may_start=False).call("GET", "/v1/hello"))
    except DaemonNotRunning as error:
        if context.show.is_json:
            context.show.data({"running": False, "home": context.settings.home})
        else:
            context.show.text(f"{error}\n")
        return EXIT_NOT_RUNNING
    return 0


def _tell(context: Context, greeting: dict[str, Json]) -> None:
    if context.show.is_json:
        context.show.data({"running": True, **greeting})
        return
    context.show.facts(
        [
            ("daemon", f"{greeting['version']}, process {greeting['pid']}"),
            ("since", str(greeting["started_at"])),
            ("home", str(greeting["home"])),
            ("log", launch.log_path(context.settings)),
        ]
    )
    if greeting["version"] != __version__:
        context.show.warning(
            f"this `toft` is {__version__}: `toft daemon stop && toft daemon start` changes it"
        )


def stop(context: Context) -> int:
    """End it. Its leases live on for the grace, for the next daemon; with --purge nothing is left at all."""
    is_purge = context.arguments.has("purge")
    stopped = _stop(context, is_purge=is_purge)
    while is_purge and stopped is None:  # it was stopping already, without purging: now the next one
        stopped = _stop(context, is_purge=True)
    stopped = stopped or {"stopped": True, "leases": None}
    if context.show.is_json:
        context.show.data(stopped)
    else:
        context.show.text("stopped\n" if stopped["stopped"] else "no daemon was running\n")
        if stopped["leases"] and not is_purge:
            context.show.note("leases live on; a `toft run` that holds one starts the daemon again")
    return 0


def _stop(context: Context, *, is_purge: bool) -> dict[str, Json] | None:
    """What the daemon that runs answers, when it has ended; None when somebody else ended it just then."""
    try:
        greeting = context.daemon(may_start=is_purge).call("GET", "/v1/hello")
    except DaemonNotRunning:
        return {"stopped": False, "leases": 0}
    stopped: dict[str, Json] | None = None
    try:
        daemon = context.daemon(may_start=False)
        stopped = daemon.call("POST", "/v1/stop", {"purge": is_purge}, patience_seconds=None)
    except (DaemonStopping, DaemonLeft, DaemonNotRunning):
        pass
    _wait_for_end(greeting["pid"])
    return stopped


def _wait_for_end(pid: Json) -> None:
    if not isinstance(pid, int):
        return
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        end = select.poll()
        end.register(pidfd, select.POLLIN)
        if not end.poll(_STOP_SECONDS * 1000):
            raise DaemonUnreachable(cause=f"process {pid} did not end within {_STOP_SECONDS} s")
    finally:
        os.close(pidfd)


def logs(context: Context) -> int:
    """What it said."""
    path = launch.log_path(context.settings)
    if os.path.exists(path):
        count = context.arguments.get("lines") or "200"
        follow = ["-F"] if context.arguments.has("follow") else []
        os.execvp("tail", ["tail", "-n", count, *follow, path])
    context.show.note(f"there is no log yet: {path}")
    return 0


USAGE = {
    "start": (
        Usage("toft daemon start", "Start the daemon unless it runs; `toft run` does it too."),
        start,
    ),
    "stop": (
        Usage(
            "toft daemon stop",
            "End the daemon. Leases live on for a short while, for the next daemon to take over.",
            (Flag("purge", "End all leases and remove everything that Toft keeps."),),
        ),
        stop,
    ),
    "status": (Usage("toft daemon status", "Say whether the daemon runs; exit status 3 when not."), status),
    "logs": (
        Usage(
            "toft daemon logs",
            "Print the end of the daemon's log.",
            (Flag("lines", "How many lines (200).", "COUNT", short="n"), Flag("follow", "Go on.", short="f")),
        ),
        logs,
    ),
}
