"""A report as a table for people and as one JSON object for machines; and the machine's own description."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import msgspec

from toft.bench.measure import Figure, Report


def describe_machine(home: Path) -> dict[str, str | int | float]:
    """Cores, memory, kernel, Python and the file system under `home`."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count() or 1,
        "memory_gib": round(memory / 2**30, 1),
        "kernel": platform.release(),
        "arch": platform.machine(),
        "python": platform.python_version(),
        "cpu": _cpu_model(),
        "home_file_system": _file_system(home),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def _file_system(path: Path) -> str:
    """The type of the mount that holds `path`, from /proc/mounts (longest matching mount point)."""
    target = path.resolve()
    best = ("", "unknown")
    for line in Path("/proc/mounts").read_text(errors="replace").splitlines():
        _, point, kind, *_ = line.split(" ")
        mount = Path(point)
        if (target == mount or mount in target.parents) and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]


def as_json(report: Report) -> str:
    """The report in the form that docs and tools rely on; see `measure.Figure`."""
    return msgspec.json.encode(report).decode()


def as_table(report: Report) -> str:
    """The report for a terminal."""
    rows = [("figure", "n", "p50", "p95", "p99", "unit", "floor", "ratio", "goal")]
    rows += [_row(figure) for figure in report.figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    machine = ", ".join(f"{name} {value}" for name, value in report.machine.items())
    floors = sorted({figure.floor.what for figure in report.figures if figure.floor})
    return "\n".join(
        [f"toft {report.version} on {machine}", "", *lines, "", *(f"floor: {what}" for what in floors)]
    )


def _row(figure: Figure) -> tuple[str, ...]:
    middle = figure.p50 if figure.value is None else figure.value
    goal = "" if figure.goal is None else " ".join(f"{key}<={bound:g}" for key, bound in figure.goal.items())
    goal = (
        goal.replace("value_at_most<=", "<=")
        .replace("value_at_least<=", ">=")
        .replace("ratio_at_least<=", "ratio>=")
    )
    verdict = {None: "", True: "met: ", False: "MISSED: "}[figure.meets_goal]
    return (
        figure.name,
        str(figure.n),
        _number(middle),
        _number(figure.p95),
        _number(figure.p99),
        figure.unit,
        _number(figure.floor.p50 if figure.floor else None),
        _number(figure.ratio),
        verdict + goal,
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
