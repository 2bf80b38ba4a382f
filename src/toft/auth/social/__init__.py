"""Logins by way of an identity provider: out to it, back from it, and whose account it is.

Nouns: provider, issuer, person (what a provider says), stand-in (the test provider that Toft plays itself).
Start at `flow.py`. Never: a password, a session that `linking.py` has not decided on.
"""
