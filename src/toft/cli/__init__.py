"""The command line: `toft run -- CMD` and its relatives.

Nouns: command (one file under `commands/`), `Usage`, `Context`. Start at `main.py`. Every command is imported
when it is called and not before; `run`, `lease` and `psql` import cheap standard library only. Never: a
decision of its own about leases or backends; it asks the daemon and shows what it says.
"""
