"""Errors, each defined once under its noun and rendered by the CLI, the control API and the SDK.

Start at `shape.py`; `catalogue.py` lists them all. Wire contracts of Supabase keep upstream's shapes
and live with their services. A module here never does I/O and never imports a heavy module: the CLI's
quick path loads it.
"""
