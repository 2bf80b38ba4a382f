"""Pure: one-time codes, the hashes that links carry, and PKCE challenges."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

import msgspec

from toft.auth.errors import AuthError, bad_request
from toft.world import Entropy

#: in front of the hash of a link that ends a PKCE flow
PKCE_PREFIX = "pkce_"

_CHALLENGE = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_METHODS = ("s256", "plain")


class Challenge(msgspec.Struct, frozen=True):
    """A PKCE challenge. method: `s256` or `plain`."""

    text: str
    method: str


def make_code(entropy: Entropy, length: int) -> str:
    """Decimal digits, uniformly random."""
    top = 10**length
    while True:
        # 64 bits more than needed; the part above the largest multiple is thrown again
        number = int.from_bytes(entropy.bytes(12), "big")
        if number < (1 << 96) // top * top:
            return f"{number % top:0{length}}"


def hash_code(address: str, code: str) -> str:
    """What is stored for a code that was sent to an address, and what its link carries."""
    return hashlib.sha224((address + code).encode()).hexdigest()


def is_same_hash(stored: str, computed: str) -> bool:
    """Whether a stored hash, with or without the prefix of PKCE, is this one."""
    return hmac.compare_digest(stored.removeprefix(PKCE_PREFIX).encode(), computed.encode())


def parse_challenge(text: str, method: str) -> Challenge | None:
    """The challenge of a request; None when it has none. Raises `AuthError`."""
    if not text and not method:
        return None
    if not text or not method:
        raise bad_request("PKCE flow requires code_challenge_method and code_challenge")
    if method.lower() not in _METHODS:
        raise bad_request("code_challenge_method must be s256 or plain")
    if not _CHALLENGE.fullmatch(text):
        raise bad_request(
            "code_challenge must be 43 to 128 of the characters A-Z, a-z, 0-9, '-', '.', '_', '~'"
        )
    return Challenge(text, method.lower())


def check_verifier(challenge: Challenge, verifier: str) -> None:
    """Raise `AuthError` unless the verifier answers the challenge."""
    answer = verifier
    if challenge.method == "s256":
        digest = hashlib.sha256(verifier.encode()).digest()
        answer = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    if not hmac.compare_digest(answer.encode(), challenge.text.encode()):
        message = "code challenge does not match previously saved code verifier"
        raise AuthError(400, "bad_code_verifier", message)
