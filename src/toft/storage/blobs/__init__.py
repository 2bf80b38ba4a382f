"""Where the bytes of objects live, by version; rows say which version an object has.

Nouns: version (a random name that is written once), store. Start at `store.py`. Never: a user's key as a
path, SQL, a decision about rights.
"""
