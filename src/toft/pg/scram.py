"""Pure: SCRAM-SHA-256 (RFC 5802, RFC 7677) without channel binding: the client's half, and verifiers.

A verifier with few iterations makes connecting cheap. That is sound for the passwords that Toft draws itself
(they have more than 128 bits, so that guessing is hopeless at any speed) and for no other.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import stringprep
import unicodedata
from typing import override

_MECHANISM_HEADER = "n,,"
_MECHANISM_HEADER_BASE64 = "biws"
_MAX_ITERATIONS = 1_000_000


class ScramFailed(Exception):
    """The server's half of the conversation is malformed, or it does not know the password either."""


class ScramClient:
    """One conversation: `first`, then `reply` to the server's first message, then `verify` its last."""

    __slots__ = ("_client_first", "_nonce", "_password", "_server_signature", "is_verified")

    def __init__(self, password: str, nonce: bytes) -> None:
        self._password = password
        self._nonce = base64.b64encode(nonce).decode("ascii")
        self._client_first = f"n=,r={self._nonce}"
        self._server_signature = b""
        self.is_verified = False

    @override
    def __repr__(self) -> str:
        return "ScramClient(…)"

    def first(self) -> bytes:
        return (_MECHANISM_HEADER + self._client_first).encode("ascii")

    def reply(self, server_first: bytes) -> bytes:
        """The proof of the password. Raises `ScramFailed`."""
        nonce, salt, iterations = self._read_challenge(server_first)
        client_key, server_key = _derive_keys(self._password, salt, iterations)
        final = f"c={_MECHANISM_HEADER_BASE64},r={nonce}"
        signed = b"%b,%b,%b" % (self._client_first.encode("ascii"), server_first, final.encode("ascii"))
        signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
        proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
        self._server_signature = hmac.digest(server_key, signed, "sha256")
        return final.encode("ascii") + b",p=" + base64.b64encode(proof)

    def verify(self, server_final: bytes) -> None:
        """Raises `ScramFailed` unless the server has proved that it knows the password's verifier."""
        given = _attributes(server_final).get("v", "")
        if not hmac.compare_digest(given.encode(), base64.b64encode(self._server_signature)):
            raise ScramFailed("the server's signature is not that of this password")
        self.is_verified = True

    def _read_challenge(self, server_first: bytes) -> tuple[str, bytes, int]:
        told = _attributes(server_first)
        try:
            nonce, salt, iterations = told["r"], base64.b64decode(told["s"], validate=True), int(told["i"])
        except (KeyError, ValueError, binascii.Error) as error:
            raise ScramFailed("the server's challenge is malformed") from error
        if not nonce.startswith(self._nonce) or len(nonce) <= len(self._nonce):
            raise ScramFailed("the server's nonce does not continue ours")
        if not 1 <= iterations <= _MAX_ITERATIONS:
            raise ScramFailed("the server asks for an unreasonable number of iterations")
        return nonce, salt, iterations


def verifier(password: str, salt: bytes, iterations: int) -> str:
    """What `ALTER ROLE … PASSWORD` stores, made here, so that the server never sees the password."""
    client_key, server_key = _derive_keys(password, salt, iterations)
    stored_key = hashlib.sha256(client_key).digest()
    salt64, stored64, server64 = (base64.b64encode(part).decode() for part in (salt, stored_key, server_key))
    return f"SCRAM-SHA-256${iterations}:{salt64}${stored64}:{server64}"


def _derive_keys(password: str, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    salted = hashlib.pbkdf2_hmac("sha256", _prepare(password).encode(), salt, iterations)
    return hmac.digest(salted, b"Client Key", "sha256"), hmac.digest(salted, b"Server Key", "sha256")


def _attributes(message: bytes) -> dict[str, str]:
    try:
        pairs = [pair.split("=", 1) for pair in message.decode("utf-8").split(",")]
    except UnicodeDecodeError as error:
        raise ScramFailed("the server's message is not text") from error
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _prepare(password: str) -> str:
    """SASLprep (RFC 4013); a password that it forbids is used as it is, which is what Postgres does."""
    if password.isascii():
        return password
    kept = [char for char in password if not stringprep.in_table_b1(char)]
    mapped = "".join(" " if stringprep.in_table_c12(char) else char for char in kept)
    prepared = unicodedata.normalize("NFKC", mapped)
    if not prepared or any(_is_forbidden(char) for char in prepared) or not _has_sound_direction(prepared):
        return password
    return prepared


def _is_forbidden(char: str) -> bool:
    return (
        stringprep.in_table_a1(char)
        or stringprep.in_table_c12(char)
        or stringprep.in_table_c21_c22(char)
        or stringprep.in_table_c3(char)
        or stringprep.in_table_c4(char)
        or stringprep.in_table_c5(char)
        or stringprep.in_table_c6(char)
        or stringprep.in_table_c7(char)
        or stringprep.in_table_c8(char)
        or stringprep.in_table_c9(char)
    )


def _has_sound_direction(text: str) -> bool:
    """RFC 3454, section 6: right-to-left text has no left-to-right characters and begins and ends as such."""
    if not any(stringprep.in_table_d1(char) for char in text):
        return True
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    return ends and not any(stringprep.in_table_d2(char) for char in text)
