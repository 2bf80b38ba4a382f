"""`client/response.py`: an answer in pieces of any size."""

from __future__ import annotations

import pytest

from toft.client.response import Response

PLAIN = b'HTTP/1.1 201 Created\r\nContent-Type: application/json\r\ncontent-length: 7\r\n\r\n{"a":1}'
CHUNKED = (
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n\r\nabc\r\na;x=y\r\n0123456789\r\n0\r\n\r\n"
)


@pytest.mark.parametrize(("raw", "body"), [(PLAIN, b'{"a":1}'), (CHUNKED, b"\r\nabc0123456789")])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_pieces_make_no_difference(raw: bytes, body: bytes, size: int) -> None:
    """However the bytes are cut, the answer is the same."""
    response = Response()
    seen = b"".join(response.feed(raw[at : at + size]) for at in range(0, len(raw), size))
    assert (seen, response.is_done) == (body, True)


def test_head_is_read() -> None:
    """Status and headers are known with the head, names in lower case."""
    response = Response()
    response.feed(PLAIN[:-3])
    assert (response.status, response.headers["content-type"], response.is_done) == (
        201,
        "application/json",
        False,
    )


def test_no_content_is_done_at_once() -> None:
    """A 204 has no body and needs no length."""
    response = Response()
    response.feed(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert response.is_done


@pytest.mark.parametrize("raw", [b"", PLAIN[:20], PLAIN[:-1], CHUNKED[:-12]])
def test_early_end_is_an_error(raw: bytes) -> None:
    """An answer that stops before its end is a ValueError."""
    response = Response()
    response.feed(raw)
    with pytest.raises(ValueError, match="cut short"):
        response.end()


@pytest.mark.parametrize(
    "raw",
    [b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"x" * 100_000, CHUNKED.replace(b"5\r\n", b"zz\r\n")],
)
def test_nonsense_is_an_error(raw: bytes) -> None:
    """What is not HTTP is a ValueError."""
    with pytest.raises(ValueError):
        Response().feed(raw)
