"""Pure: errors about the daemon, its home and how to reach it."""

from __future__ import annotations

from toft.errors.shape import ToftError


class DaemonUnreachable(ToftError):
    code = "TOFT-DAEMON-UNREACHABLE"
    status = 503
    message = "the daemon does not answer: {cause}"
    remedy = "`toft daemon start`, then `toft daemon logs` if it does not stay"


class DaemonStopping(DaemonUnreachable):
    code = "TOFT-DAEMON-STOPPING"
    message = "the daemon is stopping"
    remedy = "ask again: the next one starts by itself, and takes over the leases that live"


class DaemonLeft(DaemonUnreachable):
    code = "TOFT-DAEMON-LEFT"
    message = "the daemon went away before it had answered: {cause}"
    remedy = "ask again: the next one starts by itself, and takes over the leases that live"


class DaemonNotRunning(ToftError):
    code = "TOFT-DAEMON-NOT-RUNNING"
    status = 503
    message = "no daemon is running for {home}"
    remedy = "`toft daemon start`; `toft run` starts it by itself"


class VersionMismatch(ToftError):
    code = "TOFT-DAEMON-VERSION"
    status = 409
    message = "this `toft` is {client} but the running daemon is {daemon}"
    remedy = "`toft daemon stop && toft daemon start` takes the new version into use; leases survive it"


class HomeUnusable(ToftError):
    code = "TOFT-HOME-UNUSABLE"
    status = 500
    message = "the Toft home {path} cannot be used: {cause}"
    remedy = "set TOFT_HOME to a folder that you can write to"


class BadRequest(ToftError):
    code = "TOFT-REQUEST-INVALID"
    status = 400
    message = "the request is not understood: {cause}"
    remedy = "see `toft --help`; if `toft` itself made this request, its version and the daemon's differ"


class UsageError(ToftError):
    code = "TOFT-USAGE"
    status = 400
    exit_status = 2
    message = "{cause}"
    remedy = "`{command} --help` shows how it is used"


class CommandNotFound(ToftError):
    code = "TOFT-COMMAND-NOT-FOUND"
    status = 404
    exit_status = 127
    message = "the command `{command}` was not found"
    remedy = "check its spelling and the PATH"


class CommandNotExecutable(ToftError):
    code = "TOFT-COMMAND-NOT-EXECUTABLE"
    status = 403
    exit_status = 126
    message = "the command `{command}` cannot be executed: {cause}"
    remedy = "check its permissions and its first line"
