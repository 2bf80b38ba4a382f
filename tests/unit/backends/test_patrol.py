"""Who falls asleep, and when the next round is."""

from __future__ import annotations

from toft.backends.patrol import ROUND_SECONDS, decide_pause, decide_sleepers
from toft.protocol.worker import BackendUsage


def used(idle: float, sql: int = 0, http: int = 0) -> BackendUsage:
    return BackendUsage(idle_seconds=idle, sql_connections=sql, http_in_flight=http, requests=0)


def test_the_idle_fall_asleep() -> None:
    """Idle for long enough, without a session or a request."""
    usage = {"a": used(900), "b": used(899), "c": used(2000, sql=1), "d": used(2000, http=1), "e": used(901)}
    assert decide_sleepers(usage, 900) == ["a", "e"]


def test_never() -> None:
    """Zero means never."""
    assert decide_sleepers({"a": used(1e9)}, 0) == []


def test_the_pause() -> None:
    """Until the first may fall asleep, but no longer than a round."""
    assert decide_pause({"a": used(890), "b": used(10)}, 900) == 10
    assert decide_pause({"a": used(10)}, 900) == ROUND_SECONDS
    assert decide_pause({"a": used(10)}, 0) == ROUND_SECONDS
    assert decide_pause({"a": used(2000, sql=1)}, 900) == ROUND_SECONDS
