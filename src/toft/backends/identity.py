"""Who a backend is: its passwords and keys, made when it is cloned and never changed. Runs in a job process.

So that taking a lease is only a hand-over, and no key is computed in the daemon's event loop. Secrets live in
the store and in the worker's memory, never in the tenant's database.
"""

from __future__ import annotations

from toft.protocol.worker import JwtKey, Secrets
from toft.tokens.apikey import make_legacy_key, make_publishable, make_secret
from toft.tokens.keys import new_password, new_secret, new_signing_key
from toft.world import Clock, Entropy

#: login roles of which every backend has its own password
ROLES = (
    "supabase_admin",
    "postgres",
    "authenticator",
    "supabase_auth_admin",
    "supabase_storage_admin",
)


def make_secrets(entropy: Entropy, clock: Clock) -> Secrets:
    """All passwords and keys of a new backend."""
    secret = new_secret(entropy)
    key = new_signing_key(entropy)
    now = clock.unix()
    return Secrets(
        jwt_secret=secret,
        jwt_keys=(JwtKey(kid=key.kid, alg=key.alg, jwk=key.jwk, signs=True),),
        anon_key=make_legacy_key("anon", secret, now),
        service_role_key=make_legacy_key("service_role", secret, now),
        publishable_key=make_publishable(entropy),
        secret_key=make_secret(entropy),
        s3_access_key_id=entropy.bytes(16).hex(),
        s3_secret_access_key=entropy.bytes(32).hex(),
        passwords={role: new_password(entropy) for role in ROLES},
    )
