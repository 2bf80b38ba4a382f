"""What one does with a database besides using it: compare, check, inspect, describe, carry away.

Nouns: `Catalogue` (all objects of a database as values), `Change`, `Finding`. Start at `catalogue.py`.
Works on any Postgres by a connection as its owner; knows nothing of leases. Imported by commands that take
their time.
"""
