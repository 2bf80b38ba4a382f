"""Pure: facts counted. One counter per event name, one for each of its flags, a sum for each duration."""

from __future__ import annotations

from collections import Counter

from toft.telemetry.events import Event


class Metrics:
    """Counters since the process started."""

    def __init__(self) -> None:
        self._counters: Counter[str] = Counter()
        self._sums: Counter[str] = Counter()

    def __call__(self, event: Event) -> None:
        """Count one event."""
        self._counters[event.name] += 1
        for field in event.__struct_fields__:
            value = getattr(event, field)
            if value is True:
                self._counters[f"{event.name}.{field}"] += 1
            elif field.endswith("_ms"):
                self._sums[f"{event.name}.{field}"] += value

    def read(self) -> dict[str, float]:
        """All counters and sums by name."""
        return {**self._counters, **{name: round(value, 3) for name, value in self._sums.items()}}
