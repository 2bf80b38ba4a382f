"""The acts: each takes a context and a backend, brings the world one step nearer to the wish, and notes that.

All are idempotent, and safe to cancel and to do again.

Nouns: act. Start at `create.py`. Never: a decision what to do next (`decide.py` does that).
"""
