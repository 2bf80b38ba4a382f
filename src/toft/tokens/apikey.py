"""Pure: the four API keys of a project: legacy anon and service_role tokens, publishable and secret keys."""

from __future__ import annotations

import hashlib

from toft.tokens.jwt import KeyRing
from toft.tokens.keys import encode_bytes
from toft.world import Entropy

PUBLISHABLE = "sb_publishable_"
SECRET = "sb_secret_"  # noqa: S105  # the visible prefix, not a secret
ISSUER = "toft"

_LIFETIME_SECONDS = 10 * 365 * 86400


def make_legacy_key(role: str, secret: str, issued_at: float) -> str:
    """A long-lived HS256 token that names a role, as older clients expect their API key to be."""
    claims = {"iss": ISSUER, "role": role, "iat": int(issued_at), "exp": int(issued_at) + _LIFETIME_SECONDS}
    return KeyRing(secret).sign(claims)


def make_publishable(entropy: Entropy) -> str:
    """An opaque key that stands for `anon`."""
    return _opaque(PUBLISHABLE, entropy)


def make_secret(entropy: Entropy) -> str:
    """An opaque key that stands for `service_role`."""
    return _opaque(SECRET, entropy)


def is_opaque(key: str) -> bool:
    """Whether this text claims to be a publishable or secret key, ours or not."""
    return key.startswith((PUBLISHABLE, SECRET))


def has_valid_form(key: str) -> bool:
    """Whether an opaque key is complete: finds a truncated or mistyped key without knowing the right one."""
    if not is_opaque(key):
        return False
    head, _, checksum = key[:-9], key[-9:-8], key[-8:]
    return key[-9:-8] == "_" and _checksum(head) == checksum


def _opaque(prefix: str, entropy: Entropy) -> str:
    head = prefix + encode_bytes(entropy.bytes(16))
    return f"{head}_{_checksum(head)}"


def _checksum(head: str) -> str:
    return encode_bytes(hashlib.sha256(head.encode()).digest()[:6])
