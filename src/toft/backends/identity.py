"""Who a backend is: its ports, user, passwords and keys, made when it is wished for and never changed.

So that taking a lease is only a hand-over. Secrets live in the store and in the worker's memory, never in the
tenant's database.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from toft.ids import BackendId, make_id
from toft.protocol.worker import JwtKey, Secrets
from toft.tokens.apikey import make_legacy_key, make_publishable, make_secret
from toft.tokens.keys import encode_bytes, new_password, new_secret, new_signing_key
from toft.world import Clock, Entropy

#: Below the range from which the kernel gives ports to outgoing connections.
FIRST_PORT = 20_000
LAST_PORT = 31_999
#: login roles of which every backend has its own password
ROLES = (
    "supabase_admin",
    "postgres",
    "authenticator",
    "supabase_auth_admin",
    "supabase_storage_admin",
)


class NoPortLeft(Exception):
    """Every port of the range is a backend's."""


def new_backend_id(entropy: Entropy) -> BackendId:
    """An identifier that no backend had before."""
    return BackendId(make_id("b", entropy.bytes(10)))


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


def new_credential(entropy: Entropy) -> str:
    """What proves the holder of a lease."""
    return "toft_" + encode_bytes(entropy.bytes(24))


class Ports:
    """Goes round the range, so that a port that was just given up is not given out soon."""

    def __init__(self, entropy: Entropy) -> None:
        self._next = FIRST_PORT + int.from_bytes(entropy.bytes(4), "big") % (LAST_PORT - FIRST_PORT + 1)

    def choose(self, is_taken: Callable[[int], bool]) -> int:
        """The next port of the range that is not taken."""
        for _ in range(FIRST_PORT, LAST_PORT + 1):
            port = self._next
            self._next = port + 1 if port < LAST_PORT else FIRST_PORT
            if not is_taken(port):
                return port
        raise NoPortLeft


def choose_uid(first: int, taken: Collection[int]) -> int:
    """The lowest user id from `first` on that no backend has."""
    uid = first
    while uid in taken:
        uid += 1
    return uid
