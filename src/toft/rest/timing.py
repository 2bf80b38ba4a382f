"""Given a clock: how long each part of a request took, as Server-Timing tells it."""

from __future__ import annotations

from typing import Final

from toft.world import Clock

_PARTS: Final = ("jwt", "parse", "plan", "transaction", "response")


class Stopwatch:
    """Laps between the parts of one request. Without a clock it measures nothing."""

    __slots__ = ("_clock", "_laps", "_last")

    def __init__(self, clock: Clock | None = None, token_seconds: float = 0.0) -> None:
        self._clock = clock
        self._laps = {"jwt": token_seconds}
        self._last = 0.0 if clock is None else clock.mono()

    def lap(self, part: str) -> None:
        """`part` ends here; should it come again, the times add up."""
        if self._clock is not None:
            now = self._clock.mono()
            self._laps[part] = self._laps.get(part, 0.0) + now - self._last
            self._last = now

    def header(self) -> tuple[bytes, bytes]:
        """The header field, in milliseconds."""
        shown = ", ".join(
            f"{part};dur={self._laps[part] * 1000:.1f}" for part in _PARTS if part in self._laps
        )
        return b"server-timing", shown.encode()
