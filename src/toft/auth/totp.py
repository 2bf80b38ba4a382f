"""Pure: time-based one-time passwords (RFC 6238) as authenticator apps make them: SHA-1, six digits, 30 s."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from urllib.parse import quote, urlencode

STEP_SECONDS = 30
DIGITS = 6


def make_secret(chance: bytes) -> str:
    """Twenty random bytes in base32, as apps take them."""
    return base64.b32encode(chance[:20]).decode().rstrip("=")


def code_at(secret: str, unix: float) -> str:
    """The code of the step that this moment belongs to.

    >>> code_at("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", 59)
    '287082'
    """
    key = base64.b32decode(secret + "=" * (-len(secret) % 8), casefold=True)
    digest = hmac.digest(key, int(unix // STEP_SECONDS).to_bytes(8, "big"), hashlib.sha1)
    offset = digest[-1] & 15
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}}"


def matches(secret: str, code: str, unix: float) -> bool:
    """Whether the code is that of now, or of one step before or after."""
    try:
        known = [code_at(secret, unix + step * STEP_SECONDS) for step in (-1, 0, 1)]
    except (binascii.Error, ValueError):
        return False
    # all are compared, so that the time does not tell which one it was
    return sum(hmac.compare_digest(one.encode(), code.encode()) for one in known) > 0


def make_uri(secret: str, issuer: str, account: str) -> str:
    """What the QR code says."""
    members = {
        "algorithm": "SHA1",
        "digits": str(DIGITS),
        "issuer": issuer,
        "period": str(STEP_SECONDS),
        "secret": secret,
    }
    return f"otpauth://totp/{quote(issuer)}:{quote(account)}?{urlencode(members)}"
