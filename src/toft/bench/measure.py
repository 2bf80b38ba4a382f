"""Pure: samples become figures. A figure is a distribution (or one value) beside its floor and its goal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec


class Floor(msgspec.Struct, frozen=True):
    """What the bare tool does on the same machine in the same run."""

    what: str
    p50: float


class Figure(msgspec.Struct, frozen=True):
    """One line of a report.

    p50, p95, p99 are nearest-rank percentiles of `n` samples in `unit`; `value` serves figures that are no
    distribution (a rate, a size). ratio: to the floor. goal: statistic → bound; without one `meets_goal`
    is None.
    """

    name: str
    unit: str
    n: int
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    value: float | None = None
    floor: Floor | None = None
    ratio: float | None = None
    goal: dict[str, float] | None = None
    meets_goal: bool | None = None


class Report(msgspec.Struct, frozen=True):
    """All figures of one run, and the machine they belong to."""

    machine: dict[str, str | int | float]
    version: str
    figures: list[Figure]


def percentile(samples: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: the smallest sample that at least `share` of all do not exceed.

    >>> percentile([4.0, 1.0, 3.0, 2.0], 0.5)
    2.0
    """
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def distribution(
    name: str,
    unit: str,
    samples: Sequence[float],
    *,
    floor: tuple[str, Sequence[float]] | None = None,
    goal: Mapping[str, float] | None = None,
    or_ratio: float | None = None,
) -> Figure:
    """A figure of many samples. Goals are upper bounds on `p50`, `p95`, `p99` or `ratio`.

    or_ratio: where the bare tool is slower than a goal for `p50` supposes, so many times its p50 will do.
    """
    stats = {
        "p50": percentile(samples, 0.5),
        "p95": percentile(samples, 0.95),
        "p99": percentile(samples, 0.99),
    }
    bare = Floor(floor[0], round(percentile(floor[1], 0.5), 4)) if floor else None
    if bare and bare.p50:
        stats["ratio"] = stats["p50"] / bare.p50
    return Figure(
        name=name,
        unit=unit,
        n=len(samples),
        p50=round(stats["p50"], 4),
        p95=round(stats["p95"], 4),
        p99=round(stats["p99"], 4),
        floor=bare,
        ratio=round(stats["ratio"], 3) if "ratio" in stats else None,
        goal={**goal, **({"or_ratio": or_ratio} if or_ratio else {})} if goal else None,
        meets_goal=_meets(stats, goal, or_ratio) if goal else None,
    )


def _meets(stats: Mapping[str, float], goal: Mapping[str, float], or_ratio: float | None) -> bool:
    is_near = or_ratio is not None and "ratio" in stats and stats["ratio"] <= or_ratio
    return all(stats[key] <= bound or (key == "p50" and is_near) for key, bound in goal.items())


def single(
    name: str,
    unit: str,
    value: float,
    *,
    n: int = 1,
    floor: tuple[str, float] | None = None,
    at_most: float | None = None,
    at_least: float | None = None,
    ratio_at_least: float | None = None,
) -> Figure:
    """A figure that is one value: a rate, a size, a share."""
    bare = Floor(floor[0], round(floor[1], 4)) if floor else None
    ratio = value / floor[1] if floor and floor[1] else None
    goal: dict[str, float] = {}
    met: list[bool] = []
    if at_most is not None:
        goal["value_at_most"] = at_most
        met.append(value <= at_most)
    if at_least is not None:
        goal["value_at_least"] = at_least
        met.append(value >= at_least)
    if ratio_at_least is not None and ratio is not None:
        goal["ratio_at_least"] = ratio_at_least
        met.append(ratio >= ratio_at_least)
    return Figure(
        name=name,
        unit=unit,
        n=n,
        value=round(value, 4),
        floor=bare,
        ratio=round(ratio, 3) if ratio is not None else None,
        goal=goal or None,
        meets_goal=all(met) if met else None,
    )
