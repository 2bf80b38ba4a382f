"""`protocol/plain_json.py` says what the `json` module says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toft.protocol.plain_json import decode, encode

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@given(values)
def test_encode_is_compact_json(value: object) -> None:
    """The `json` module reads back what `encode` wrote, and would have written the same."""
    assert json.loads(encode(value)) == value
    assert encode(value).decode() == json.dumps(value, separators=(",", ":"))


@given(values, st.sampled_from([None, 2]))
def test_decode_reads_any_json(value: object, indent: int | None) -> None:
    """`decode` reads what the `json` module wrote, compact or indented, ASCII or not."""
    assert decode(json.dumps(value, indent=indent).encode()) == value
    assert decode(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) == value


@given(st.text(max_size=30))
def test_what_is_not_json_is_a_value_error(text: str) -> None:
    """Both take the same texts; a refusal is a ValueError."""
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):
            decode(text.encode("utf-8", "surrogatepass"))
    else:
        assert decode(text.encode()) == expected


def test_other_objects_have_no_json() -> None:
    """Encoding what JSON has no form for is a TypeError."""
    with pytest.raises(TypeError):
        encode({"path": object()})
