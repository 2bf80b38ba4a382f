"""A multipart form with one file, read as it arrives: fields are kept, the file is passed on in pieces."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from toft.storage.errors import invalid_request, too_large

MOST_FIELDS = 10
LARGEST_FIELD_BYTES = 1024 * 1024


class Form:
    """A form on its way in. `open_file` first, then the file's bytes, then `finish`."""

    def __init__(
        self, content_type: str, body: AsyncIterator[bytes], *, most_fields: int = MOST_FIELDS
    ) -> None:
        _, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if not boundary:
            raise invalid_request("Multipart: Boundary not found")
        self.fields: dict[str, str] = {}
        self.file_type = ""
        self.file_name = ""
        self._most_fields = most_fields
        self._body = body
        self._chunks: deque[bytes] = deque()
        self._has_file = False
        self._is_in_file = False
        self._is_over = False
        self._header_name = b""
        self._header_value = b""
        self._part: dict[str, bytes] = {}
        self._name = ""
        self._value = bytearray()
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin_part,
                "on_part_data": self._take_data,
                "on_part_end": self._end_part,
                "on_header_field": self._take_header_name,
                "on_header_value": self._take_header_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_end": self._end,
            },
        )

    async def open_file(self) -> bool:
        """Read up to the file's first byte. False when the form has none."""
        while not self._has_file and await self._feed():
            pass
        return self._has_file

    async def file_chunks(self) -> AsyncGenerator[bytes]:
        """The file's bytes."""
        while self._chunks or self._is_in_file:
            while self._chunks:
                yield self._chunks.popleft()
            if self._is_in_file and not await self._feed():
                raise invalid_request("Multipart: the file ends too early")

    async def finish(self) -> None:
        """Read the fields that come after the file."""
        while await self._feed():
            self._chunks.clear()
        if not self._is_over:
            raise invalid_request("Multipart: the form ends too early")

    async def _feed(self) -> bool:
        async for chunk in self._body:
            try:
                self._parser.write(chunk)
            except MultipartParseError:
                raise invalid_request("Multipart: the form cannot be read") from None
            return True
        return False

    # What the parser calls.

    def _begin_part(self) -> None:
        self._part = {}
        self._value = bytearray()

    def _take_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _take_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        self._part[self._header_name.decode("latin-1").lower()] = self._header_value
        self._header_name = self._header_value = b""

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._part.get("content-disposition", b""))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" not in options:
            if len(self.fields) >= self._most_fields:
                raise invalid_request("Multipart: too many fields")
            return
        if self._has_file:
            raise invalid_request("Multipart: more than one file")
        self._has_file = self._is_in_file = True
        self.file_type = self._part.get("content-type", b"").decode("latin-1")
        self.file_name = options[b"filename"].decode("utf-8", "replace")

    def _take_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_in_file:
            self._chunks.append(data[start:end])
            return
        self._value += data[start:end]
        if len(self._value) > LARGEST_FIELD_BYTES:
            raise too_large()

    def _end_part(self) -> None:
        if self._is_in_file:
            self._is_in_file = False
        else:
            self.fields[self._name] = self._value.decode("utf-8", "replace")

    def _end(self) -> None:
        self._is_over = True
