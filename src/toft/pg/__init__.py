"""Postgres over the wire: our own pipelined driver, its pool, and the typed driver behind one adapter.

Nouns: `Connection`, `Statement`, `Result`, `Pool`, `PostgresError`. Start at `connection.py`; `wire.py` is
the protocol as a pure codec, `scram.py` its log-in. Never: SQL of any service, or what a failure means to a
user.
"""
