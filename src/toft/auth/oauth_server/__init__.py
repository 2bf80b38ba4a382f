"""Auth as an OAuth 2.1 server: applications ask users for consent and get tokens of theirs.

Nouns: client, authorization, consent, grant. Start at `authorize.py`, then `consent.py` and `token.py`.
Never: a redirect to what was not registered, a code without PKCE, a token that changes its user's account.
"""
