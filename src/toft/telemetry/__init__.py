"""Facts worth reporting, and what becomes of them: log lines and counters.

Nouns: `Event` (the closed list in `events.py`), `Telemetry`, `LogFile`, `Metrics`. Start at `events.py`.
Never: decisions; no code path may depend on it.
"""
