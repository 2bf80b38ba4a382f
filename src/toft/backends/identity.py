"""Who a backend is: its passwords and keys, made when it is cloned and never changed. Runs in a job process.

So that taking a lease is only a hand-over, and no key is computed in the daemon's event loop. Secrets live in
the store and in the worker's memory, never in the tenant's database.
"""

from __future__ import annotations

import msgspec

from toft.engine.marks import ROLES
from toft.protocol.worker import AuthKeys, JwtKey, Secrets
from toft.tokens.apikey import make_legacy_key, make_publishable, make_secret
from toft.tokens.keys import new_password, new_secret, new_signing_key
from toft.world import Clock, Entropy


def with_project_keys(secrets: Secrets, keys: AuthKeys, now: float) -> Secrets:
    """Pure: the secrets with what a project brings along in `[auth]` of its config.toml.

    Tokens of the older kind are made anew where only the secret that signs them is the project's.
    """
    if keys == AuthKeys():
        return secrets
    secret = keys.jwt_secret or secrets.jwt_secret
    anon, service = secrets.anon_key, secrets.service_role_key
    if keys.jwt_secret:
        anon, service = (make_legacy_key(role, secret, now) for role in ("anon", "service_role"))
    return msgspec.structs.replace(
        secrets,
        jwt_secret=secret,
        jwt_keys=keys.signing or secrets.jwt_keys,
        anon_key=keys.anon_key or anon,
        service_role_key=keys.service_role_key or service,
        publishable_key=keys.publishable_key or secrets.publishable_key,
        secret_key=keys.secret_key or secrets.secret_key,
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
