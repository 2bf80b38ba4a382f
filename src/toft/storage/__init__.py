"""Storage: buckets and objects over the backend's `storage` schema, as Supabase Storage answers.

Nouns: bucket, object, version, probe. Start at `service.py`, then `routes.py`.
Never: a decision about rights of its own (row level security judges as the caller), a user's key as a path.
"""
