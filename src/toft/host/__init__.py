"""The machine underneath: processes, files, confinement, limits, and what it can do.

Nouns: Process (a pid that cannot be mistaken for its successor), Confinement (what a process may see),
Limits. Start at `processes.py`; `confine.py` is pure and writes command lines only.
It knows nothing of Postgres or of leases, starts nothing through a shell, and never uses fork in Python.
"""
