"""Pure: an HTTP/1.1 response, fed with bytes as they come, in pieces of any size.

Our own daemon is the only peer, so this reads what it sends (a length, or chunks) and nothing more; whatever
else arrives is a ValueError.
"""

from __future__ import annotations

_LONGEST_HEAD = 64 * 1024


class Response:
    """status and headers are there once `has_head`; `feed` gives the body's bytes as they become known."""

    def __init__(self) -> None:
        self.has_head = False
        self.is_done = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self._rest = b""
        #: bytes that are still due of the body or of the current chunk; None: up to the end of the stream
        self._due: int | None = None
        self._is_chunked = False

    def feed(self, data: bytes) -> bytes:
        """The part of the body that these bytes complete."""
        self._rest += data
        if not self.has_head and not self._read_head():
            return b""
        return self._read_chunks() if self._is_chunked else self._read_plain()

    def end(self) -> None:
        """The peer has closed. Raises ValueError when more was due."""
        if not self.is_done and (not self.has_head or self._is_chunked or self._due):
            raise ValueError("the answer was cut short")
        self.is_done = True

    def _read_head(self) -> bool:
        head, found, rest = self._rest.partition(b"\r\n\r\n")
        if not found:
            if len(self._rest) > _LONGEST_HEAD:
                raise ValueError("the answer has no end of its head")
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, status = first.partition(" ")
        if not version.startswith("HTTP/1.") or not status[:3].isdecimal():
            raise ValueError("the answer is not HTTP")
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self.status = int(status[:3])
        self.has_head = True
        self._rest = rest
        self._is_chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        if not self._is_chunked:
            length = self.headers.get("content-length")
            self._due = 0 if self.status in (204, 304) else int(length) if length else None
        else:
            self._due = 0
        return True

    def _read_plain(self) -> bytes:
        body, self._rest = self._rest, b""
        if self._due is not None:
            body = body[: self._due]
            self._due -= len(body)
            self.is_done = self._due == 0
        return body

    def _read_chunks(self) -> bytes:
        body = b""
        while self._rest and not self.is_done:
            if self._due:
                piece = self._rest[: self._due]
                self._due -= len(piece)
                self._rest = self._rest[len(piece) :]
                body += piece
                continue
            line, found, rest = self._rest.lstrip(b"\r\n").partition(b"\r\n")
            if not found:
                break
            self._due = int(line.split(b";")[0], 16)
            self._rest = rest
            self.is_done = self._due == 0
        return body
