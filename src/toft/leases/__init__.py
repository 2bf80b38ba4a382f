"""Rights in time, of anything: who may have a thing, until when, and how many are kept ready.

Nouns: `Lease`, `Pool`, shelf, order. Start at `lease.py`, then `lifecycle.py` (pure: when does it end) and
`refill.py` (pure: how many of what). Never: knowledge of what is leased.
"""
