"""Facts become lines and counters, and no fault of a sink reaches who reports."""

from __future__ import annotations

from pathlib import Path

from toft.telemetry.events import BackendGone, Fault, LeaseEnded, LeaseTaken, TrashSwept
from toft.telemetry.log import LogFile, Telemetry, format_line
from toft.telemetry.metrics import Metrics
from toft.world import SystemClock


def test_a_line() -> None:
    """Plain values stand as they are, others in quotes; a line is a line whatever is in it."""
    event = LeaseEnded(lease="l_1", backend="b_1", reason='it said "no"\nand left')
    assert format_line("T", event) == (
        r'T info lease.ended lease=l_1 backend=b_1 reason="it said \"no\"\nand left"'
    )


def test_levels(tmp_path: Path) -> None:
    """What is quieter than the level is left out."""
    log = LogFile(tmp_path / "logs" / "log", SystemClock(), level="info")
    log(TrashSwept(directories=1, took_ms=1))
    log(Fault(where="here", cause="it broke"))
    log.close()
    [line] = (tmp_path / "logs" / "log").read_text().splitlines()
    assert " error fault where=here " in line


def test_turning_over(tmp_path: Path) -> None:
    """A file that grew too large becomes `.1`, and nothing is lost at the seam."""
    log = LogFile(tmp_path / "log", SystemClock(), most_bytes=200)
    for number in range(6):
        log(LeaseEnded(lease=f"l_{number}", backend="b", reason="r"))
    log.close()
    text = (tmp_path / "log.1").read_text() + (tmp_path / "log").read_text()
    assert "l_5" in text
    assert (tmp_path / "log").stat().st_size < 400


def test_sinks_that_fail() -> None:
    """A full disk must not end the daemon."""
    heard: list[str] = []

    def fail(event: object) -> None:
        raise OSError(28, "No space left on device")

    tell = Telemetry(fail, lambda event: heard.append(event.name))
    tell(Fault(where="here", cause="it broke"))
    assert heard == ["fault"]


def test_metrics() -> None:
    """Events are counted by name, durations added up."""
    metrics = Metrics()
    metrics(BackendGone(backend="b", took_ms=2))
    metrics(BackendGone(backend="c", took_ms=3.5))
    for pooled in (True, False):
        metrics(LeaseTaken(lease="l", backend="b", template="t", was_pooled=pooled, waited_ms=1))
    assert metrics.read() == {
        "backend.gone": 2,
        "backend.gone.took_ms": 5.5,
        "lease.taken": 2,
        "lease.taken.was_pooled": 1,
        "lease.taken.waited_ms": 2,
    }
