"""Whether a gateway worker grows by what it serves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toft.bench.cpu import CpuMeter
from toft.bench.load import Load
from toft.bench.measure import Figure, single
from toft.bench.subjects import SHAPES

_STEP_SECONDS = 10.0
#: Caches fill, allocators round up: what a run may end above where its first fifth ended.
GROWTH_MB = 2.0


def measure_memory(
    meter: CpuMeter,
    load: Callable[[Sequence[str], float], Load],
    seconds: float,
    report: Callable[[str], None],
    requests: int = 0,
) -> Figure:
    """Memory after a fifth of the requests, and how much more it is at the end: for so long, or so many."""
    step = min(_STEP_SECONDS, seconds / 5)
    samples: list[tuple[int, float]] = []
    count, spent = 0, 0.0
    while count < requests if requests else spent < seconds:
        count += load(SHAPES, step).count
        spent += step
        samples.append((count, meter.own_kb() / 1024))
        report(f"{count} requests, {samples[-1][1]:.1f} MB")
    settled = next(size for seen, size in samples if seen >= count / 5)
    return single("api.memory_growth", "MB", samples[-1][1] - settled, n=count, at_most=GROWTH_MB)
