"""Run benches by name and print one report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from toft import __version__
from toft import settings as options
from toft.bench import api, auth, backend, density, fork, storage
from toft.bench.measure import Figure, Report
from toft.bench.report import as_json, as_table, describe_machine
from toft.errors.daemon import UsageError

BENCHES: dict[str, Callable[[bool, Callable[[str], None]], list[Figure]]] = {
    "backend": backend.measure,
    "api": api.measure,
    "auth": auth.measure,
    "density": density.measure,
    "fork": fork.measure,
    "storage": storage.measure,
}


def run(names: Sequence[str], *, is_json: bool, is_quick: bool) -> int:
    """Run the named benches, or all. A missed goal is no failure: the exit status stays 0."""
    for name in names:
        if name not in BENCHES:
            raise UsageError(command="toft bench", cause=f"there is no bench `{name}`")
    figures: list[Figure] = []
    for name in names or BENCHES:
        figures += BENCHES[name](is_quick, _progress)
    environ = options.environment()
    place = Path(environ.get("TOFT_BENCH_DIR") or "/dev/shm")
    report = Report(describe_machine(place), __version__, figures)
    print(as_json(report) if is_json else as_table(report))
    return 0


def _progress(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")
