"""How samples become figures, and when a goal is met."""

from __future__ import annotations

import pytest

from toft.bench.measure import distribution, single


@pytest.mark.parametrize(
    ("samples", "bare", "is_met"),
    [
        ([4.0, 5.0, 6.0], [1.0], True),
        ([7.0, 8.0, 9.0], [5.0], True),
        ([7.0, 8.1, 9.0], [5.0], False),
        ([7.0, 8.0, 41.0], [5.0], False),
    ],
)
def test_a_goal_or_a_ratio(samples: list[float], bare: list[float], *, is_met: bool) -> None:
    """A median may miss its bound where the floor explains it; the tail may not."""
    figure = distribution("x", "ms", samples, floor=("bare", bare), goal={"p50": 5, "p99": 40}, or_ratio=1.6)
    assert figure.meets_goal is is_met
    assert figure.goal == {"p50": 5, "p99": 40, "or_ratio": 1.6}


def test_without_a_goal_nothing_is_met() -> None:
    """No goal, no verdict; and a floor of nothing gives no ratio."""
    figure = distribution("x", "ms", [1.0], floor=("bare", [0.0]))
    assert (figure.meets_goal, figure.goal, figure.ratio) == (None, None, None)
    assert single("x", "MB", 3.0, at_most=2).meets_goal is False
    assert single("x", "req/s", 3.0, floor=("bare", 6.0), ratio_at_least=0.5).meets_goal is True
