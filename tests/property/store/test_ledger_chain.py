"""Any edit of the ledger breaks its chain."""

from __future__ import annotations

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from toft.store.ledger import GENESIS, Entry, find_break, seal

TEXT = st.text(max_size=8)
CONTENT = st.lists(st.tuples(TEXT, TEXT, TEXT, TEXT), min_size=1, max_size=8)


def make_chain(contents: list[tuple[str, str, str, str]]) -> list[Entry]:
    entries: list[Entry] = []
    previous = GENESIS
    for seq, (at, kind, subject, facts) in enumerate(contents, 1):
        previous = seal(previous, seq, at, kind, subject, facts)
        entries.append(Entry(seq, at, kind, subject, facts, previous))
    return entries


@given(CONTENT)
def test_a_chain_is_whole(contents: list[tuple[str, str, str, str]]) -> None:
    """A chain that nobody touched has no break."""
    assert find_break(make_chain(contents)) is None


@given(CONTENT, st.data())
def test_an_edit_breaks_it(contents: list[tuple[str, str, str, str]], data: st.DataObject) -> None:
    """A changed field is found at its entry."""
    entries = make_chain(contents)
    index = data.draw(st.integers(0, len(entries) - 1))
    field = data.draw(st.sampled_from(["at", "kind", "subject", "facts"]))
    value = data.draw(TEXT)
    assume(value != getattr(entries[index], field))
    entries[index] = msgspec.structs.replace(entries[index], **{field: value})
    assert find_break(entries) == index + 1


@given(CONTENT, st.data())
def test_a_removal_breaks_it(contents: list[tuple[str, str, str, str]], data: st.DataObject) -> None:
    """An entry that was taken out is missed, unless it was the last."""
    entries = make_chain(contents)
    assume(len(entries) > 1)
    del entries[data.draw(st.integers(0, len(entries) - 2))]
    assert find_break(entries) is not None


@given(st.lists(TEXT, min_size=4, max_size=4), st.integers(0, 3))
def test_fields_cannot_borrow(fields: list[str], cut: int) -> None:
    """Moving characters from one field to its neighbour gives another seal."""
    joined = fields[0] + fields[1]
    assume(cut <= len(joined) and joined[:cut] != fields[0])
    at, kind, subject, facts = joined[:cut], joined[cut:], fields[2], fields[3]
    assert seal(GENESIS, 1, *fields) != seal(GENESIS, 1, at, kind, subject, facts)
