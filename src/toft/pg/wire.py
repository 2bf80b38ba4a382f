"""Pure: the Postgres protocol, version 3.0, as bytes and values: what we say, and what the server answers.

Values travel as raw bytes, in text format unless asked otherwise: whoever asks knows what they mean, and the
Data API passes them on untouched. `Replies` reads the answers of one connection, fed in pieces of any size.
Its loop is the hottest Python in Toft, which is why the common messages are decoded inline.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

import msgspec

_INT = struct.Struct("!i")
_pack_int = _INT.pack
_read_int = cast("Callable[[bytes, int], tuple[int]]", _INT.unpack_from)
_NULL: Final = b"\xff\xff\xff\xff"
_TEXT_RESULTS: Final = b"\0\0"
_BINARY_RESULTS: Final = b"\0\x01\0\x01"

SYNC: Final = b"S\0\0\0\x04"
TERMINATE: Final = b"X\0\0\0\x04"
#: Execute the unnamed portal, all rows.
EXECUTE: Final = b"E\0\0\0\x09\0\0\0\0\0"
#: Describe the unnamed portal.
DESCRIBE: Final = b"D\0\0\0\x06P\0"
SSL_REQUEST: Final = struct.pack("!ii", 8, 80877103)
GSS_REQUEST: Final = struct.pack("!ii", 8, 80877104)
CANCEL_CODE: Final = 80877102

#: Transaction status bytes of ReadyForQuery.
IDLE: Final = 0x49
IN_TRANSACTION: Final = 0x54
IN_FAILED_TRANSACTION: Final = 0x45


class ProtocolViolation(Exception):
    """The server sent what the protocol does not allow here."""


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """So many parameters as they are sent."""

    count: int
    data: bytes


#: COPY's data goes in messages of so much
_PIECE = 1 << 18


class Statement(msgspec.Struct, frozen=True, gc=False):
    """One statement of a pipeline.

    params: values in text format, None for NULL. more: those that come after, encoded before, where the
    same are sent again and again. name_key: names the prepared statement that is kept on the connection;
    the key must determine the SQL (and, under RLS, the role: see the Data API). None: not kept. describe:
    the result's columns are wanted. binary: the result's values are wanted in binary format. copied: what
    COPY FROM STDIN reads.
    """

    sql: bytes
    params: tuple[bytes | None, ...] = ()
    name_key: bytes | None = None
    describe: bool = False
    binary: bool = False
    more: Encoded | None = None
    copied: bytes | None = None


class Column(msgspec.Struct, frozen=True):
    name: str
    oid: int


type Row = list[bytes | None]


class Result(msgspec.Struct):
    """What one statement gave. `columns` is empty unless it was asked for (a script always tells).

    Rows are decoded when they are looked at: of a pipeline's results most never are.
    """

    raw_tag: bytes = b""
    columns: tuple[Column, ...] = ()
    #: what the rows were received in, and where they begin there
    places: list[tuple[bytes, int]] = []
    _rows: list[Row] | None = None

    @property
    def rows(self) -> list[Row]:
        """The rows, each a list of raw values, None for NULL."""
        if self._rows is None:
            self._rows = [_read_row(data, at) for data, at in self.places]
            self.places = []
        return self._rows

    @property
    def first_value(self) -> bytes | None:
        """The first value of the first row, and no other. Raises IndexError when there is no row."""
        if self._rows is not None or not self.places:
            return self.rows[0][0]
        data, at = self.places[0]
        length = _read_int(data, at + 2)[0]
        return None if length < 0 else data[at + 6 : at + 6 + length]

    @property
    def tag(self) -> str:
        """The command tag, like `INSERT 0 1`; empty for an empty statement."""
        return self.raw_tag.decode("utf-8", "replace")

    @property
    def affected(self) -> int:
        """The number of rows that the command tag tells, 0 if it tells none."""
        last = self.raw_tag.rpartition(b" ")[2]
        return int(last) if last.isdigit() else 0


# What we say.


def startup(parameters: Mapping[str, str]) -> bytes:
    """The first message of a connection."""
    pairs = "".join(f"{name}\0{value}\0" for name, value in parameters.items())
    body = _pack_int(196608) + pairs.encode() + b"\0"
    return _pack_int(len(body) + 4) + body


def parse(name: bytes, sql: bytes) -> bytes:
    """Prepare `sql` as `name`; the server infers the types of its parameters."""
    return b"P%b%b\0%b\0\0\0" % (_pack_int(len(name) + len(sql) + 8), name, sql)


def encode(params: Sequence[bytes | None]) -> Encoded:
    """Parameters in the form in which `bind` sends them."""
    return Encoded(len(params), b"".join([_NULL if p is None else _pack_int(len(p)) + p for p in params]))


def bind(
    name: bytes, params: Sequence[bytes | None], binary: bool = False, more: Encoded | None = None
) -> bytes:
    """Bind `params`, and after them `more`, to the prepared statement `name` as the unnamed portal."""
    values = [_NULL if param is None else _pack_int(len(param)) + param for param in params]
    count = len(values)
    if more is not None:
        count += more.count
        values.append(more.data)
    if count > 65535:
        raise ValueError("a statement takes at most 65535 parameters")
    body = b"\0%b\0\0\0%b%b%b" % (
        name,
        count.to_bytes(2),
        b"".join(values),
        _BINARY_RESULTS if binary else _TEXT_RESULTS,
    )
    return b"B%b%b" % (_pack_int(len(body) + 4), body)


def close_statement(name: bytes) -> bytes:
    return b"C%bS%b\0" % (_pack_int(len(name) + 6), name)


def query(sql: str) -> bytes:
    """The simple protocol: `sql` may hold several statements."""
    return message(b"Q", sql.encode() + b"\0")


def copy_data(raw: bytes) -> list[bytes]:
    """What COPY FROM STDIN reads, to its end. A COPY that has failed passes over it."""
    pieces = [raw[at : at + _PIECE] for at in range(0, len(raw), _PIECE)]
    return [*(message(b"d", piece) for piece in pieces), message(b"c", b"")]


def message(kind: bytes, body: bytes) -> bytes:
    return kind + _pack_int(len(body) + 4) + body


def cancel_request(backend_key: bytes) -> bytes:
    """`backend_key`: the body of BackendKeyData."""
    return _pack_int(8 + len(backend_key)) + _pack_int(CANCEL_CODE) + backend_key


# What the server says.


class Replies:
    """The answers on one connection.

    `feed` takes the bytes as they arrive. At ReadyForQuery `on_ready` is called, when `results`, `error` and
    `status` tell what became of the exchange; whoever began it takes them by `take`. Messages that are not
    part of an ordinary answer go to `on_other(kind, body)`.
    """

    __slots__ = (
        "_buffer",
        "_columns",
        "_missing",
        "_on_other",
        "_on_ready",
        "_pieces",
        "_places",
        "error",
        "parsed",
        "results",
        "status",
    )

    def __init__(self, on_ready: Callable[[], None], on_other: Callable[[int, bytes], None]) -> None:
        self._on_ready = on_ready
        self._on_other = on_other
        #: the beginning of a message whose rest has not arrived: small ones in `_buffer`; of a large one all
        #: pieces, until the `_missing` bytes are there, so that a long row is joined once
        self._buffer = b""
        self._pieces: list[bytes] = []
        self._missing = 0
        #: of the result that is being received
        self._places: list[tuple[bytes, int]] = []
        self._columns: tuple[Column, ...] = ()
        self.results: list[Result] = []
        self.error: dict[str, str] | None = None
        #: how many ParseComplete messages came
        self.parsed = 0
        self.status: int = IDLE

    def take(self) -> tuple[list[Result], dict[str, str] | None]:
        """The finished exchange; afterwards all is ready for the next one."""
        taken = self.results, self.error
        self.results = []
        self.error = None
        self.parsed = 0
        return taken

    def feed(self, data: bytes) -> None:  # noqa: C901  (one loop over message kinds: splitting it costs a call a message)
        if self._missing:
            self._missing -= len(data)
            self._pieces.append(data)
            if self._missing > 0:
                return
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._missing = 0
        elif self._buffer:
            data = self._buffer + data
            self._buffer = b""
        places, columns = self._places, self._columns
        at, end = 0, len(data)
        while end - at >= 5:
            stop = at + 1 + _read_int(data, at + 1)[0]
            if stop < at + 5:
                raise ProtocolViolation("a message claims an impossible length")
            if stop > end:
                self._expect(data[at:], stop - end)
                at = end
                break
            kind = data[at]
            if kind == 0x44:  # D: a row
                places.append((data, at + 5))
            elif kind == 0x32:  # 2: bound; a result begins
                places, columns = [], ()
            elif kind == 0x43:  # C: a statement is complete
                self.results.append(Result(data[at + 5 : stop - 1], columns, places))
                places, columns = [], ()
            elif kind == 0x5A:  # Z: ready
                self.status = data[at + 5]
                self._on_ready()
            elif kind == 0x54:  # T: the columns
                columns = _read_columns(data, at + 5)
            elif kind == 0x31:  # 1: parsed
                self.parsed += 1
            elif kind == 0x49:  # I: the statement was empty
                self.results.append(Result())
            elif kind == 0x45:  # E
                self.error = read_fields(data[at + 5 : stop])
                places, columns = [], ()
            elif kind == 0x64:  # d: a line of COPY … TO STDOUT, kept as a row of one value
                line = data[at + 5 : stop]
                places.append((b"\0\x01" + _pack_int(len(line)) + line, 0))
            elif kind not in _SILENT:
                self._on_other(kind, data[at + 5 : stop])
            at = stop
        self._places, self._columns = places, columns
        if at < end:
            self._buffer = data[at:]

    def _expect(self, beginning: bytes, missing: int) -> None:
        if missing < 4096:
            self._buffer = beginning
        else:
            self._pieces.append(beginning)
            self._missing = missing


#: 3 closed, n no columns, t types of parameters, s portal suspended, H begin and c end of COPY … TO STDOUT.
_SILENT = frozenset(b"3ntsHc")


def _read_row(data: bytes, at: int) -> Row:
    row: Row = []
    start = at + 2
    for _ in range(data[at] << 8 | data[at + 1]):
        length = _read_int(data, start)[0]
        start += 4
        if length < 0:
            row.append(None)
        else:
            row.append(data[start : start + length])
            start += length
    return row


def _read_columns(data: bytes, at: int) -> tuple[Column, ...]:
    columns: list[Column] = []
    start = at + 2
    for _ in range(int.from_bytes(data[at:start], "big")):
        zero = data.index(0, start)
        name = data[start:zero].decode("utf-8", "replace")
        columns.append(Column(name, int.from_bytes(data[zero + 7 : zero + 11], "big")))
        start = zero + 19
    return tuple(columns)


def read_fields(body: bytes) -> dict[str, str]:
    """The fields of an ErrorResponse or NoticeResponse by their one-letter codes."""
    parts = body.split(b"\0")
    return {chr(part[0]): part[1:].decode("utf-8", "replace") for part in parts if part}
