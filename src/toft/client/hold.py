"""The stream that keeps a lease while a command runs, and its return after a restart of the daemon.

Nothing here waits: the caller waits for its command and for this at once, calls `pump` when the socket has
something or `wait_seconds` are over, and is told what happened as sentences for the user.
"""

from __future__ import annotations

import os
import time
from fcntl import F_GETFL, F_SETFL, F_SETOWN, fcntl

from toft.client import launch, raises
from toft.client.transport import Stream, dial, send
from toft.errors.daemon import DaemonNotRunning, DaemonUnreachable
from toft.errors.shape import ToftError
from toft.protocol import plain_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toft.settings import Settings

#: So long the daemon keeps a lease whose stream broke because the daemon itself went away.
GRACE_SECONDS = 30.0
#: A daemon that someone is restarting by hand comes back by itself; after this time it is helped.
_HELP_AFTER_SECONDS = 1.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class Hold:
    """Keeps one lease. The process gets SIGIO whenever there is something to `pump`."""

    def __init__(
        self,
        stream: Stream,
        lease_id: str,
        credential: str,
        settings: Settings,
        environ: Mapping[str, str],
        python: str,
    ) -> None:
        self.lease_id = lease_id
        self._credential = credential
        self._settings = settings
        self._environ = environ
        self._python = python
        self._stream: Stream | None = None
        self._is_over = False
        self._lost_at = 0.0
        self._next_try_at = 0.0
        self._pause = _FIRST_PAUSE
        self._watch(stream)

    def wait_seconds(self) -> float | None:
        """How long one may wait for SIGIO before the next `pump`; None: for ever."""
        if self._is_over or self._stream is not None:
            return None
        return max(0.0, self._next_try_at - time.monotonic())

    def pump(self) -> Iterator[str]:
        """Take in what has arrived, or try to come back. Yields what the user should know."""
        if self._is_over:
            return
        if self._stream is None:
            yield from self._come_back()
        while self._stream is not None:
            stream = self._stream
            is_open = stream.pump()
            if stream.response.status >= 300:
                if stream.response.is_done and stream.response.status < 500:  # else: just coming, just going
                    error = raises.from_answer(stream.response.status, stream.read_all())
                    self.close()
                    yield f"{error}; the command goes on without its backend"
            else:
                yield from self._tell(stream)
            if is_open:
                return
            self._lose()

    def _tell(self, stream: Stream) -> Iterator[str]:
        while (line := stream.next_line()) is not None:
            if "ended" in line:
                self._is_over = True
                yield f"lease {self.lease_id} has ended ({line['ended']}); the command goes on without it"
            elif "notice" in line:
                yield str(line["notice"])

    def close(self) -> None:
        """Let go: the daemon ends the lease now. Idempotent."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        self._is_over = True

    def _watch(self, stream: Stream) -> None:
        """From now on the kernel says by SIGIO when the stream has something."""
        stream.sock.setblocking(False)
        fd = stream.sock.fileno()
        fcntl(fd, F_SETOWN, os.getpid())
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | os.O_ASYNC)
        self._stream = stream

    def _lose(self) -> None:
        """The other side has gone. A daemon that takes calls and drops them counts as still gone."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        stream.close()
        if stream.response.has_head and stream.response.status < 300:
            self._lost_at = self._next_try_at = time.monotonic()
            self._pause = _FIRST_PAUSE

    def _come_back(self) -> Iterator[str]:
        now = time.monotonic()
        if now < self._next_try_at:
            return
        self._next_try_at = now + self._pause
        self._pause = min(self._pause * 1.5, _LONGEST_PAUSE)
        if now - self._lost_at > GRACE_SECONDS:
            self._is_over = True
            yield f"no daemon for {GRACE_SECONDS:.0f} s: lease {self.lease_id} is lost; the command goes on"
            return
        try:
            sock = dial(launch.socket_path(self._settings), self._settings.home)
            message = plain_json.encode({"credential": self._credential})
            self._watch(send(sock, "POST", f"/v1/leases/{self.lease_id}/hold", message))
        except DaemonNotRunning:
            if now - self._lost_at >= _HELP_AFTER_SECONDS:
                self._help()
        except DaemonUnreachable:
            pass  # it is just going or just coming; the next try tells

    def _help(self) -> None:
        try:
            launch.start_in_background(self._settings, self._environ, self._python)
        except (OSError, ToftError):
            pass  # the home may be gone: then the grace runs out, and that is said
