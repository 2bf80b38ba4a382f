"""Pure: making new secrets and signing keys out of given chance."""

from __future__ import annotations

import base64
import hashlib

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc.jwk import OctKey, RSAKey

from toft.world import Entropy

#: order of the curve P-256
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


class NewKey(msgspec.Struct, frozen=True):
    """A fresh signing key: the fields of `protocol.worker.JwtKey`, which this floor may not name."""

    kid: str
    alg: str
    jwk: str
    signs: bool = True

    def __repr__(self) -> str:
        return f"NewKey(kid={self.kid!r}, alg={self.alg!r})"


def new_secret(entropy: Entropy) -> str:
    """A project secret for HS256: 43 characters, 256 bits."""
    return encode_bytes(entropy.bytes(32))


def new_password(entropy: Entropy) -> str:
    """A password that needs no quoting anywhere: 32 characters, 192 bits."""
    return encode_bytes(entropy.bytes(24)).replace("-", "0").replace("_", "1")


def new_signing_key(entropy: Entropy, alg: str = "ES256") -> NewKey:
    """A private key for ES256, RS256 or HS256; its `kid` is the key's thumbprint (RFC 7638).

    RSA's primes are the library's own, and take tens of milliseconds to be found.
    """
    if alg == "ES256":
        return _new_ec_key(entropy)
    key = RSAKey.generate_key(2048) if alg == "RS256" else OctKey.import_key(entropy.bytes(64))
    kid = key.thumbprint()
    jwk = {**key.as_dict(private=True), "kid": kid, "alg": alg, "use": "sig"}
    return NewKey(kid=kid, alg=alg, jwk=msgspec.json.encode(jwk).decode())


def _new_ec_key(entropy: Entropy) -> NewKey:
    # 64 bits more than the order has: the remainder's bias is negligible (FIPS 186-5, A.2.1)
    number = int.from_bytes(entropy.bytes(40), "big") % (_ORDER - 1) + 1
    point = ec.derive_private_key(number, ec.SECP256R1()).public_key().public_numbers()
    public = {"crv": "P-256", "kty": "EC", "x": _coordinate(point.x), "y": _coordinate(point.y)}
    thumbprint = encode_bytes(hashlib.sha256(msgspec.json.encode(public)).digest())
    jwk = {**public, "d": _coordinate(number), "kid": thumbprint, "alg": "ES256", "use": "sig"}
    return NewKey(kid=thumbprint, alg="ES256", jwk=msgspec.json.encode(jwk).decode())


def encode_bytes(raw: bytes) -> str:
    """URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _coordinate(number: int) -> str:
    return encode_bytes(number.to_bytes(32, "big"))
