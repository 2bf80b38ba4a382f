"""Postgres clusters, with no idea of tenants.

Nouns: Engine (binaries of one major version), Template (a stopped data directory named by what went into
it), Running (a postmaster that outlives us). Start at `binaries.py`, then `conf.py` (pure), `bootstrap.py`
with its SQL, `template.py`, `clone.py`, `postmaster.py`.
It never trusts a connection without a password, never polls for readiness, never copies a running
cluster.
"""
