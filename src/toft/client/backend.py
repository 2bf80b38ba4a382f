"""Calls to the control API: leases, engines, the daemon itself."""

from __future__ import annotations

import time

from toft import __version__
from toft.client import launch, raises
from toft.client.transport import PATIENCE_SECONDS, Stream, dial, send
from toft.errors.daemon import DaemonLeft, DaemonStopping, DaemonUnreachable
from toft.errors.project import ProjectUnknown
from toft.protocol import plain_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toft.protocol.bundle import Bundle
    from toft.protocol.plain_json import Json
    from toft.settings import Settings

#: So long one daemon may take to go and the next one to come; and so often it is tried at least.
CHANGE_SECONDS = 5.0
LEAST_TRIES = 4
#: The files of a project are sent again so often, should somebody collect rubbish just then.
MOST_SENT = 3


class Daemon:
    """The daemon of one home, as this process sees it. Each call is a connection of its own.

    may_start: a call that finds no daemon starts one. Calls raise what the daemon raised, as the same class.
    """

    def __init__(
        self, settings: Settings, environ: Mapping[str, str], python: str, *, may_start: bool = True
    ) -> None:
        self.settings = settings
        self.environ = environ
        self.python = python
        self.may_start = may_start

    def call(
        self,
        method: str,
        path: str,
        message: Json = None,
        patience_seconds: float | None = PATIENCE_SECONDS,
    ) -> dict[str, Json]:
        """Send a message and give the answer, an object; empty when the answer has no body."""
        body = b"" if message is None else plain_json.encode(message)

        def ask() -> dict[str, Json]:
            stream = self._send(method, path, body)
            stream.sock.settimeout(patience_seconds)
            return self._read(stream)

        return self._insist(ask, DaemonStopping if method == "POST" else (DaemonStopping, DaemonLeft))

    def put_project(self, bundle: Bundle, digest: str) -> None:
        """Give the daemon the files of a project that it has not seen yet."""
        self._read(self._send("PUT", f"/v1/projects/{digest}", bundle.encode(), "application/octet-stream"))

    def hold(self, ask: Callable[[], tuple[dict[str, Json], Stream]]) -> tuple[dict[str, Json], Stream]:
        """A lease with its stream. One that a daemon gave just before it went away ends without a holder.

        A project can become unknown while one waits: somebody collected rubbish. Its files are sent again.
        """
        return self._insist(ask, (DaemonStopping, DaemonLeft, ProjectUnknown))

    def _insist[Answer](
        self, ask: Callable[[], Answer], passing: type[Exception] | tuple[type[Exception], ...]
    ) -> Answer:
        """Ask again when a daemon is just going: asking starts the next one."""
        failed_at: list[float] = []
        pause = 0.02
        while True:
            try:
                return ask()
            except passing:
                failed_at.append(time.monotonic())
                is_enough = len(failed_at) >= LEAST_TRIES and failed_at[-1] - failed_at[0] > CHANGE_SECONDS
                if is_enough or not self.may_start:
                    raise
            time.sleep(pause)
            pause = min(pause * 1.5, 0.5)

    def open(self, path: str, message: Json) -> Stream:
        """Send a message whose answer is a stream of lines, each of which may take its time."""
        stream = self._send("POST", path, plain_json.encode(message))
        stream.sock.settimeout(None)
        stream.read_head()
        if stream.response.status >= 300:
            raise raises.from_answer(stream.response.status, stream.read_all())
        return stream

    def _send(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> Stream:
        if self.may_start:
            sock = launch.reach(self.settings, self.environ, self.python)
        else:
            sock = dial(launch.socket_path(self.settings), self.settings.home)
        return send(sock, method, path, body, content_type)

    def _read(self, stream: Stream) -> dict[str, Json]:
        body = stream.read_all()
        status = stream.response.status
        if status >= 300:
            raise raises.from_answer(status, body)
        try:
            return plain_json.as_object(plain_json.decode(body)) if body else {}
        except ValueError:
            raise DaemonUnreachable(cause="its answer is not understood") from None


def take_lease(
    daemon: Daemon,
    wish: Mapping[str, Json],
    bundle: Bundle | None,
    report: Callable[[str], None],
) -> tuple[dict[str, Json], Stream]:
    """A lease that lives as long as the stream that comes with it stays open.

    wish: members of `protocol.lease.CreateLease` other than version, project and hold. report: told what
    happens while one waits.
    """
    return daemon.hold(lambda: _take_lease(daemon, wish, bundle, report))


def _take_lease(
    daemon: Daemon, wish: Mapping[str, Json], bundle: Bundle | None, report: Callable[[str], None]
) -> tuple[dict[str, Json], Stream]:
    stream = _create(daemon, {**wish, "hold": True}, bundle, lambda wish: daemon.open("/v1/leases", wish))
    while True:
        line = stream.read_line()
        if line is None:
            raise DaemonLeft(cause="there is no lease yet")
        if "progress" in line:
            report(str(line["progress"]))
        if "error" in line:
            stream.close()
            raise raises.from_problem(plain_json.as_object(line["error"]))
        if "lease" in line:
            return plain_json.as_object(line["lease"]), stream


def create_lease(daemon: Daemon, wish: Mapping[str, Json], bundle: Bundle | None) -> dict[str, Json]:
    """A lease that lives until its time is over."""
    return _create(
        daemon,
        {**wish, "hold": False},
        bundle,
        lambda wish: daemon.call("POST", "/v1/leases", wish, patience_seconds=None),
    )


def _create[Answer](
    daemon: Daemon,
    wish: Mapping[str, Json],
    bundle: Bundle | None,
    ask: Callable[[Json], Answer],
) -> Answer:
    digest = bundle.digest() if bundle else None
    message: Json = {**wish, "version": __version__, "project": digest}
    for _ in range(MOST_SENT):
        try:
            return ask(message)
        except ProjectUnknown:
            if bundle is None or digest is None:
                raise
            daemon.put_project(bundle, digest)
    return ask(message)
