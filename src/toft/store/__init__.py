"""What must be remembered across the daemon's lives: SQLite, one writer, and the audit ledger.

Nouns: `Store`, `Transaction`, `Ledger`. Start at `connection.py`; tables are in `schema/`, in order of their
numbers. SQL of a noun stands in the `records.py` of the room that owns it.
Never: knowledge of what a row means.
"""
