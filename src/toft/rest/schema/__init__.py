"""The schema cache: what exists in the database, as one immutable value.

`model.py` are its nouns, `load.py` asks Postgres, `build.py` derives relationships from what was read,
`freshness.py` keeps one value per version. It knows nothing of requests, roles or privileges.
"""
