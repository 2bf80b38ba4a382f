"""One request over the daemon's Unix socket, and its answer: whole, or as a stream of lines that goes on.

Each call dials anew: on a Unix socket that costs nothing, and a closed connection is how a lease ends.
Uses `_socket`, since `socket` brings selectors and enums along.
"""

from __future__ import annotations

import os
import sys
from _socket import AF_UNIX, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET, socket

from toft.client.response import Response
from toft.errors.daemon import DaemonLeft, DaemonNotRunning, DaemonUnreachable
from toft.protocol import plain_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.protocol.plain_json import Json

#: Longer than anything that answers in one piece; what takes long answers by a stream.
PATIENCE_SECONDS = 60.0
_LONGEST_LINE = 16 << 20


def dial(path: str, home: str) -> socket:
    """A connection to the daemon. Raises `DaemonNotRunning` when nobody listens there."""
    sock = socket(AF_UNIX, SOCK_STREAM)
    try:
        sock.settimeout(PATIENCE_SECONDS)
        sock.connect(path)
        _require_friend(sock)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        sock.close()
        raise DaemonNotRunning(home=home) from None
    except OSError as error:
        sock.close()
        raise DaemonUnreachable(cause=os.strerror(error.errno or 0)) from None
    except DaemonUnreachable:
        sock.close()
        raise
    return sock


def _require_friend(sock: socket) -> None:
    """Secrets go over this socket: whoever listens must be this user, or root."""
    credentials = sock.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)
    uid = int.from_bytes(credentials[4:8], sys.byteorder)
    if uid not in (0, os.geteuid()):
        raise DaemonUnreachable(cause=f"its socket belongs to user {uid}")


def request_bytes(method: str, path: str, body: bytes, content_type: str) -> bytes:
    """The request as it goes over the wire."""
    head = f"{method} {path} HTTP/1.1\r\nhost: toft\r\ncontent-length: {len(body)}\r\n"
    if body:
        head += f"content-type: {content_type}\r\n"
    return head.encode() + b"\r\n" + body


class Stream:
    """An answer, read as far as one needs it: all of it by `read_all`, or line by line."""

    def __init__(self, sock: socket) -> None:
        self.sock = sock
        self.response = Response()
        self._line = b""

    def close(self) -> None:
        """Idempotent. Closing the stream of a lease gives the lease back."""
        self.sock.close()

    def read_head(self) -> None:
        """Wait until status and headers are known."""
        while not self.response.has_head:
            self._line += self._receive()

    def read_all(self) -> bytes:
        """The whole body; closes the connection."""
        parts = [self._line]
        while not self.response.is_done:
            parts.append(self._receive())
        self.close()
        return b"".join(parts)

    def read_line(self) -> dict[str, Json] | None:
        """Wait for the next JSON object of an ndjson body; None at its end."""
        while True:
            line = self.next_line()
            if line is not None or self.response.is_done:
                return line
            self._line += self._receive()

    def next_line(self) -> dict[str, Json] | None:
        """The next JSON object of those that have arrived, without waiting."""
        line, found, rest = self._line.partition(b"\n")
        if not found:
            if len(line) > _LONGEST_LINE:
                raise DaemonUnreachable(cause="a line of its answer has no end")
            return None
        self._line = rest
        try:
            return plain_json.as_object(plain_json.decode(line)) if line.strip() else self.next_line()
        except ValueError:
            raise DaemonUnreachable(cause="its answer is not understood") from None

    def pump(self) -> bool:
        """Take in what has arrived on a non-blocking socket; False when the other side has gone."""
        try:
            while True:
                self._line += self._receive()
                if self.response.is_done:
                    return False
        except BlockingIOError:
            return True
        except DaemonUnreachable:
            return False

    def _receive(self) -> bytes:
        try:
            data = self.sock.recv(1 << 16)
            if data:
                return self.response.feed(data)
        except BlockingIOError:
            raise
        except TimeoutError:
            raise DaemonUnreachable(cause=f"no answer in {PATIENCE_SECONDS:.0f} s") from None
        except OSError as error:
            raise DaemonLeft(cause=os.strerror(error.errno or 0)) from None
        except ValueError as error:
            raise DaemonUnreachable(cause=str(error)) from None
        try:
            self.response.end()
            return b""
        except ValueError as error:
            raise DaemonLeft(cause=str(error)) from None


def send(
    sock: socket, method: str, path: str, body: bytes = b"", content_type: str = "application/json"
) -> Stream:
    """Send one request; the answer is read from the stream."""
    try:
        sock.sendall(request_bytes(method, path, body, content_type))
    except (BrokenPipeError, ConnectionResetError):
        pass  # the daemon may have answered before it read everything: the answer says why
    except OSError as error:
        raise DaemonUnreachable(cause=os.strerror(error.errno or 0)) from None
    return Stream(sock)
