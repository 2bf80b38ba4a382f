"""Facts worth reporting, and what becomes of them: log lines and counters.

Start at `log.py`. Never: decisions; no code path may depend on it.
"""
