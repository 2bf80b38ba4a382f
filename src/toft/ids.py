"""Pure: typed identifiers. An identifier is a prefix that names its kind and 16 base32 characters."""

from __future__ import annotations

from typing import NewType

LeaseId = NewType("LeaseId", str)
BackendId = NewType("BackendId", str)
TemplateKey = NewType("TemplateKey", str)

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base32: no i, l, o, u


def make_id(prefix: str, chance: bytes) -> str:
    """`prefix_` and 16 characters made from ten random bytes (80 bits)."""
    number = int.from_bytes(chance[:10], "big")
    return prefix + "_" + "".join(_ALPHABET[(number >> shift) & 31] for shift in range(75, -1, -5))
