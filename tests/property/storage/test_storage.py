"""Laws of Storage's pure rooms, and of its form reader."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toft.storage.content import check_robots_tag, decode_user_metadata, parse_user_metadata
from toft.storage.cursor import Cursor, decode_cursor, encode_cursor
from toft.storage.errors import StorageError
from toft.storage.form import Form
from toft.storage.names import check_bucket_name, check_key, check_type, is_type_rule, parse_size
from toft.storage.ranges import parse_range
from toft.storage.routes import find_route
from toft.storage.signing import Grant, open_grant, sign
from toft.tokens.jwt import KeyRing

RING = KeyRing("a-secret-of-forty-characters-for-testing")
ALLOWED = "abcXYZ019_/!-.*'() &$=@;:+,?"


@given(st.text(st.sampled_from(ALLOWED), min_size=1, max_size=60))
def test_allowed_characters_make_keys_unless_they_climb(key):
    """A key is refused only for a segment that is a dot or two."""
    climbs = any(segment in (".", "..") for segment in key.split("/"))
    if climbs:
        with pytest.raises(StorageError):
            check_key(key)
    else:
        assert check_key(key) == key


@given(st.text(min_size=1, max_size=30))
def test_other_characters_do_not(key):
    """One character outside is enough."""
    if set(key) - set(ALLOWED) and not all(c.isascii() and c.isalnum() for c in set(key) - set(ALLOWED)):
        with pytest.raises(StorageError):
            check_key(key)
        with pytest.raises(StorageError):
            check_bucket_name(key)


@given(st.text(max_size=30), st.integers(0, 1000))
def test_ranges_lie_inside(header, size):
    """A span is never empty and never outside."""
    with contextlib.suppress(StorageError):
        span = parse_range(header, size)
        assert span is not None
        assert 0 <= span.start < span.end <= size


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 40))
def test_ranges_are_those_asked_for(first, last, size):
    """As slices have it."""
    data = bytes(range(size))
    try:
        span = parse_range(f"bytes={first}-{last}", size)
    except StorageError:
        assert first >= size or last < first
    else:
        assert span is not None
        assert data[span.start : span.end] == data[first : last + 1]


KEYS = st.text(st.sampled_from(ALLOWED), min_size=1, max_size=20)


@given(KEYS, KEYS, st.integers(1, 1000), st.integers(0, 2000), st.booleans())
def test_a_grant_is_for_one_object_one_use_and_a_time(key, other, seconds, later, is_upload):
    """Whatever differs, it opens nothing."""
    scope, wrong = ("upload", "download") if is_upload else ("download", "upload")
    grant = Grant(bucket="b", key=key, scope=scope, expires_at=1000 + seconds, is_upsert=True, owner="o")
    token = sign(RING, grant, 1000)
    if later < seconds:
        opened = open_grant(RING, token, "b", key, scope, 1000 + later)
        assert (opened.key, opened.is_upsert) == (key, is_upload)
    else:
        with pytest.raises(StorageError):
            open_grant(RING, token, "b", key, scope, 1000 + later)
    with pytest.raises(StorageError):
        open_grant(RING, token, "b", key, wrong, 1000)
    if other != key:
        with pytest.raises(StorageError):
            open_grant(RING, token, "b", other, scope, 1000)


@given(st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_cursors_come_back(name):
    """As they went."""
    for cursor in (Cursor(name), Cursor(name, "desc", "created_at", "2026-01-01T00:00:00.000Z")):
        assert decode_cursor(encode_cursor(cursor)) == cursor


@given(st.text(max_size=40))
def test_garbage_is_refused_in_one_way(text):
    """Cursors, sizes, rules, types, robots and metadata of any text."""
    with contextlib.suppress(StorageError):
        decode_cursor(text)
    with contextlib.suppress(StorageError):
        check_robots_tag(text)
    with contextlib.suppress(StorageError):
        check_type(text, ["image/*"])
    assert parse_size(text) is None or parse_size(text) is not None
    is_type_rule(text)
    parse_user_metadata(text)
    decode_user_metadata(text.encode("utf-8", "replace").decode("latin-1"))
    for method in ("GET", "POST", "PUT", "DELETE", "HEAD", "x"):
        find_route(method, "/object/" + text)
        find_route(method, text)


@given(st.binary(max_size=200), st.lists(st.integers(1, 60), max_size=30), st.booleans())
def test_forms_in_any_pieces(data, cuts, is_late):
    """However the network cuts it, the same file and the same fields."""
    boundary = "b0undary-of-the-test"
    field = f'--{boundary}\r\nContent-Disposition: form-data; name="cacheControl"\r\n\r\n60\r\n'.encode()
    file = (
        f'--{boundary}\r\nContent-Disposition: form-data; name=""; filename="x"\r\n'.encode()
        + b"Content-Type: a/b\r\n\r\n"
        + data.replace(boundary.encode(), b"")
        + b"\r\n"
    )
    raw = (file + field if is_late else field + file) + f"--{boundary}--\r\n".encode()

    async def pieces():
        rest = raw
        for cut in cuts:
            yield rest[:cut]
            rest = rest[cut:]
        yield rest

    async def read() -> tuple[bytes, dict[str, str], str]:
        form = Form(f"multipart/form-data; boundary={boundary}", pieces())
        assert await form.open_file()
        got = b"".join([chunk async for chunk in form.file_chunks()])
        await form.finish()
        return got, form.fields, form.file_type

    got, fields, kind = asyncio.run(read())
    assert got == data.replace(boundary.encode(), b"")
    assert fields == {"cacheControl": "60"}
    assert kind == "a/b"
