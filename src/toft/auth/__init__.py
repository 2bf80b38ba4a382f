"""Auth: users, sessions and tokens over the backend's `auth` schema, as Supabase Auth answers.

Nouns: user, identity, session, refresh-token family, factor. Start at `service.py`, then `routes.py`.
Never: keys of its own (the context brings them), hashing on the event loop, another schema's tables.
"""
