"""Keys and tokens: JWTs, signing keys, API keys, and who a caller is.

Nouns: `Caller`, `Refusal`, `KeyRing`, API key. Start at `caller.py`. Never: HTTP, SQL, the store. Pure given
keys, clock and entropy.
"""
