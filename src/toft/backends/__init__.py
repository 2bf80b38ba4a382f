"""Backends: what is wished for, what is there, and the acts that make the one into the other.

Nouns: `Backend` (record: wish and identity), `Sighting` (world), `Act`, `Recipe` (which template), `Estate`
(all backends). Start at `backend.py`, then `decide.py` (pure), `act.py`, and `take.py` for the hot path.
Never: HTTP, the worker's channel (it asks a `Gateway`), or a wait for the disk in the daemon's event loop.
"""
