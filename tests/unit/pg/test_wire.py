"""The protocol as a codec: what we say, and what we understand however it is cut into pieces."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toft.pg import wire
from toft.pg.wire import IDLE, ProtocolViolation, Replies


def told(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def row(*values: bytes | None) -> bytes:
    cells = [b"\xff\xff\xff\xff" if v is None else struct.pack("!i", len(v)) + v for v in values]
    return told(b"D", struct.pack("!h", len(values)) + b"".join(cells))


def columns(*names: str) -> bytes:
    described = [name.encode() + b"\0" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0) for name in names]
    return told(b"T", struct.pack("!h", len(names)) + b"".join(described))


READY = told(b"Z", b"I")


class Heard:
    """Collects what `Replies` reports."""

    def __init__(self) -> None:
        self.replies = Replies(self._on_ready, self._on_other)
        self.exchanges: list[tuple[list[tuple[list[wire.Row], str]], dict[str, str] | None]] = []
        self.others: list[tuple[int, bytes]] = []

    def _on_ready(self) -> None:
        results, error = self.replies.take()
        self.exchanges.append(([(result.rows, result.tag) for result in results], error))

    def _on_other(self, kind: int, body: bytes) -> None:
        self.others.append((kind, body))


PIPELINE = (
    told(b"1", b"") + told(b"2", b"") + told(b"n", b"") + told(b"C", b"SET\0")
    + told(b"2", b"") + columns("a", "b") + row(b"x", None) + row(b"", b"y" * 9000)
    + told(b"C", b"SELECT 2\0")
    + told(b"N", b"Mhello\0\0") + told(b"2", b"") + told(b"I", b"") + READY
)  # fmt: skip
PIPELINE_MEANS = (
    [([], "SET"), ([[b"x", None], [b"", b"y" * 9000]], "SELECT 2"), ([], "")],
    None,
)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, 4096, 5000, 100_000])
def test_pieces(size: int) -> None:
    """The answers are the same in whatever pieces they arrive."""
    heard = Heard()
    for start in range(0, len(PIPELINE), size):
        heard.replies.feed(PIPELINE[start : start + size])
    assert heard.exchanges == [PIPELINE_MEANS]
    assert heard.others == [(ord("N"), b"Mhello\0\0")]
    assert heard.replies.status == IDLE


def test_two_exchanges_in_one_piece() -> None:
    """An error belongs to its own exchange only."""
    heard = Heard()
    failed = told(b"2", b"") + row(b"lost") + told(b"E", b"SERROR\0C22012\0Mno\0\0") + READY
    heard.replies.feed(failed + told(b"2", b"") + row(b"1") + told(b"C", b"SELECT 1\0") + READY)
    assert heard.exchanges == [
        ([], {"S": "ERROR", "C": "22012", "M": "no"}),
        ([([[b"1"]], "SELECT 1")], None),
    ]


def test_script_results() -> None:
    """The simple protocol has no Bind: a result begins with its columns or ends at once."""
    heard = Heard()
    said = columns("a") + row(b"1") + told(b"C", b"SELECT 1\0") + told(b"C", b"CREATE TABLE\0") + READY
    heard.replies.feed(said)
    assert heard.exchanges == [([([[b"1"]], "SELECT 1"), ([], "CREATE TABLE")], None)]


def test_copy_out_lines_are_rows() -> None:
    """COPY TO STDOUT gives each line as a row of one value."""
    heard = Heard()
    said = told(b"H", b"\0\0\0") + told(b"d", b"1\n") + told(b"d", b"2\n") + told(b"c", b"")
    heard.replies.feed(said + told(b"C", b"COPY 2\0") + READY)
    assert heard.exchanges == [([([[b"1\n"], [b"2\n"]], "COPY 2")], None)]


@pytest.mark.parametrize("length", [-1, 0, 3, -(2**31)])
def test_impossible_length(length: int) -> None:
    """A length that cannot be is refused instead of read in circles."""
    with pytest.raises(ProtocolViolation):
        Heard().replies.feed(b"D" + struct.pack("!i", length) + b"\0" * 10)


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_arbitrary_bytes(pieces: list[bytes]) -> None:
    """Whatever arrives, reading ends and fails only by what a connection survives."""
    heard = Heard()
    try:
        for piece in pieces:
            heard.replies.feed(piece)
    except (ProtocolViolation, IndexError, ValueError, struct.error):
        pass


@given(st.lists(st.one_of(st.none(), st.binary(max_size=300)), max_size=30), st.booleans())
def test_bind(params: list[bytes | None], binary: bool) -> None:
    """A Bind message says its own length and carries each parameter."""
    said = wire.bind(b"t1", params, binary)
    assert said[:1] == b"B"
    assert struct.unpack("!i", said[1:5])[0] == len(said) - 1
    assert said[5:12] == b"\0t1\0\0\0" + said[11:12]
    at, found = 13, []
    assert struct.unpack("!h", said[11:13])[0] == len(params)
    for _ in params:
        length = struct.unpack("!i", said[at : at + 4])[0]
        at += 4
        found.append(None if length < 0 else said[at : at + length])
        at += max(length, 0)
    assert found == params
    assert said[at:] == (b"\0\x01\0\x01" if binary else b"\0\0")


def test_affected() -> None:
    """The number of rows is read off the tag."""
    result = wire.Result()
    for tag, count in ((b"INSERT 0 3", 3), (b"UPDATE 12", 12), (b"CREATE TABLE", 0), (b"", 0)):
        result.raw_tag = tag
        assert result.affected == count
