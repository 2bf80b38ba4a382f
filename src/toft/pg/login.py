"""Pure: the server's questions at the beginning of a connection, and our answers."""

from __future__ import annotations

import hashlib
from typing import Final, override

from toft.pg import wire
from toft.pg.scram import ScramClient, ScramFailed

_OK: Final = 0
_CLEARTEXT: Final = 3
_MD5: Final = 5
_SASL: Final = 10
_SASL_CONTINUE: Final = 11
_SASL_FINAL: Final = 12


class LoginRefused(Exception):
    """We cannot or will not answer: an unknown method, or a server that failed to prove itself."""


class Login:
    """Answers Authentication messages by SCRAM-SHA-256, MD5 or clear text, as the server asks."""

    __slots__ = ("_nonce", "_password", "_scram", "_user")

    def __init__(self, user: str, password: str, nonce: bytes) -> None:
        self._user = user
        self._password = password
        self._nonce = nonce
        self._scram: ScramClient | None = None

    @override
    def __repr__(self) -> str:
        return f"Login({self._user!r}, …)"

    def reply(self, body: bytes) -> bytes | None:
        """What to send for the body of an Authentication message, if anything. Raises `LoginRefused`."""
        method = int.from_bytes(body[:4], "big")
        try:
            return self._reply(method, body[4:])
        except ScramFailed as error:
            raise LoginRefused(str(error)) from None

    def _reply(self, method: int, rest: bytes) -> bytes | None:
        if method == _OK:
            if self._scram is not None and not self._scram.is_verified:
                raise LoginRefused("the server ended the log-in before it proved itself")
            return None
        if method == _SASL:
            if b"SCRAM-SHA-256" not in rest.split(b"\0"):
                raise LoginRefused("the server offers no log-in method that Toft knows")
            self._scram = ScramClient(self._password, self._nonce)
            first = self._scram.first()
            return wire.message(b"p", b"SCRAM-SHA-256\0" + len(first).to_bytes(4, "big") + first)
        if method == _SASL_CONTINUE and self._scram is not None:
            return wire.message(b"p", self._scram.reply(rest))
        if method == _SASL_FINAL and self._scram is not None:
            self._scram.verify(rest)
            return None
        if method == _MD5:
            inner = _md5_hex(self._password.encode() + self._user.encode())
            return wire.message(b"p", b"md5" + _md5_hex(inner + rest[:4]) + b"\0")
        if method == _CLEARTEXT:
            return wire.message(b"p", self._password.encode() + b"\0")
        raise LoginRefused("the server asks for a log-in method that Toft does not know")


def _md5_hex(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).hexdigest().encode()
