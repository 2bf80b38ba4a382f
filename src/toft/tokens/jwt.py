"""Pure: a project's keys, the tokens they verify and the tokens they sign.

Each key has exactly one algorithm, so a token can never choose how it is checked: an HS256 token is only ever
compared with a symmetric key, whatever else its header says. Signature results are kept by token text (least
recently used go first); times are judged on every call.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey

from toft.tokens.caller import Caller, TokenError, TokenFault

type Claims = dict[str, Any]

#: how far another machine's clock may be ahead of ours before `nbf` and `iat` count as the future
FUTURE_LEEWAY_SECONDS = 30

_KINDS: dict[str, type[OctKey | RSAKey | ECKey | OKPKey]] = {
    "HS256": OctKey,
    "RS256": RSAKey,
    "RS512": RSAKey,
    "ES256": ECKey,
    "ES512": ECKey,
    "EdDSA": OKPKey,
}
_KEPT_TOKENS = 1024


class SigningKey(Protocol):
    """What a key ring needs to know of a key; `protocol.worker.JwtKey` is one."""

    @property
    def kid(self) -> str: ...
    @property
    def alg(self) -> str: ...
    @property
    def jwk(self) -> str: ...
    @property
    def signs(self) -> bool: ...


class Verified:
    """A token whose signature holds: its claims, as values and as compact JSON."""

    __slots__ = ("_since", "_until", "caller", "claims", "claims_json")

    def __init__(self, claims: Claims) -> None:
        self.claims = claims
        self.claims_json = msgspec.json.encode(claims)
        #: when nothing is wrong with its times, whatever the leeway
        self._since, self._until = _good_times(claims)
        #: what `identify.py` has made of it
        self.caller: Caller | None = None

    def check_times(self, now: float, leeway_seconds: float = 0) -> None:
        """Refuse a token whose time it is not. Raises `TokenError`."""
        if not self._since <= now < self._until:
            check_times(self.claims, now, leeway_seconds)


class KeyRing:
    """The secret and the key set of one project."""

    def __init__(self, secret: str, keys: Sequence[SigningKey] = ()) -> None:
        self._secret: Key = OctKey.import_key(secret.encode())
        self._kept: OrderedDict[str, Verified] = OrderedDict()
        self.exchange(keys)

    def exchange(self, keys: Sequence[SigningKey]) -> None:
        """Have these keys from now on. What a key that is gone has signed is not known any more."""
        self._by_kid: dict[str, tuple[str, Key]] = {}
        self._signer: tuple[str, str | None, Key] = ("HS256", None, self._secret)
        self._public: list[dict[str, Any]] = []
        self._kept.clear()
        for key in keys:
            self._add(key)

    def _add(self, key: SigningKey) -> None:
        alg = key.alg if key.alg in _KINDS else "HS256"
        imported = _import_key(alg, key.jwk)
        self._by_kid[key.kid] = (alg, imported)
        if key.signs:
            self._signer = (alg, key.kid, imported)
        if alg != "HS256":
            public = dict(imported.as_dict(private=False))
            public.update(kid=key.kid, alg=alg, use="sig", key_ops=["verify"])
            self._public.append(public)

    @property
    def algorithm(self) -> str:
        """The algorithm that new tokens are signed with."""
        return self._signer[0]

    def read(self, token: str) -> Verified:
        """The claims of a token whose signature holds, whatever its times. Raises `TokenError`."""
        kept = self._kept.get(token)
        if kept is not None:
            self._kept.move_to_end(token)
            return kept
        verified = Verified(self._open(token))
        if len(self._kept) >= _KEPT_TOKENS:
            self._kept.popitem(last=False)
        self._kept[token] = verified
        return verified

    def verify(self, token: str, now: float, leeway_seconds: float = 0) -> Claims:
        """The claims of a token that holds at `now`. Raises `TokenError`."""
        verified = self.read(token)
        verified.check_times(now, leeway_seconds)
        return verified.claims

    def sign(self, claims: Mapping[str, Any]) -> str:
        """A compact token over these claims, by the signing key."""
        alg, kid, key = self._signer
        return _sign(alg, kid, key, claims)

    def sign_symmetric(self, claims: Mapping[str, Any]) -> str:
        """A compact token by the project's secret, for tokens that only our own services read."""
        return _sign("HS256", None, self._secret, claims, typ=None)

    def public_jwks(self) -> bytes:
        """The public keys as a JWK set; symmetric keys are never part of it."""
        return msgspec.json.encode({"keys": self._public})

    def _open(self, token: str) -> Claims:
        header = read_header(token)
        alg, key = self._choose(header)
        try:
            opened = jws.deserialize_compact(token, key, registry=_registry(alg))
        except JoseError:
            raise TokenError(TokenFault.NO_KEY, "signature") from None
        except (ValueError, TypeError, RecursionError, binascii.Error):
            raise TokenError(TokenFault.CRYPTO, "signature") from None
        try:
            claims = msgspec.json.decode(opened.payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise TokenError(TokenFault.CLAIMS) from None
        if not isinstance(claims, dict):
            raise TokenError(TokenFault.CLAIMS)
        return cast("Claims", claims)

    def _choose(self, header: Claims) -> tuple[str, Key]:
        """The one key that may verify this header: by `kid`, else the secret for HS256.

        A token of an asymmetric algorithm without `kid` is tried with the only key of that algorithm.
        """
        alg = header.get("alg")
        if not isinstance(alg, str) or alg.lower() == "none":
            raise TokenError(TokenFault.UNSECURED)
        if alg not in _KINDS:
            raise TokenError(TokenFault.ALGORITHM, alg)
        kid = header.get("kid")
        if isinstance(kid, str) and kid in self._by_kid:
            found = self._by_kid[kid]
            if found[0] != alg:
                raise TokenError(TokenFault.NO_KEY, "algorithm")
            return found
        if alg == "HS256":
            return alg, self._secret
        fitting = [found for found in self._by_kid.values() if found[0] == alg]
        if kid is not None or len(fitting) != 1:
            raise TokenError(TokenFault.NO_KEY, "kid")
        return fitting[0]


def read_header(token: str) -> Claims:
    """The header of a compact token, unverified. Raises `TokenError` for what is no such token."""
    if not token:
        raise TokenError(TokenFault.EMPTY)
    parts = token.split(".")
    if len(parts) != 3:
        raise TokenError(TokenFault.PARTS, str(len(parts)))
    try:
        raw = base64.urlsafe_b64decode(parts[0] + "=" * (-len(parts[0]) % 4))
        header = msgspec.json.decode(raw)
    except (ValueError, RecursionError, binascii.Error, msgspec.DecodeError):
        raise TokenError(TokenFault.CRYPTO, "header") from None
    if not isinstance(header, dict):
        raise TokenError(TokenFault.CRYPTO, "header")
    header = cast("Claims", header)
    if "enc" in header:
        raise TokenError(TokenFault.ENCRYPTED)
    return header


def check_times(claims: Claims, now: float, leeway_seconds: float = 0) -> None:
    """Refuse what has expired, is not yet valid, or has claims of the wrong type; in that order."""
    expires_at = _instant(claims, "exp")
    if expires_at is not None and now - leeway_seconds >= expires_at:
        raise TokenError(TokenFault.EXPIRED, "exp")
    not_before = _instant(claims, "nbf")
    if not_before is not None and now + FUTURE_LEEWAY_SECONDS < not_before:
        raise TokenError(TokenFault.NOT_YET_VALID, "nbf")
    issued_at = _instant(claims, "iat")
    if issued_at is not None and now + FUTURE_LEEWAY_SECONDS < issued_at:
        raise TokenError(TokenFault.ISSUED_IN_FUTURE, "iat")
    if not _is_audience(claims.get("aud")):
        raise TokenError(TokenFault.AUDIENCE_TYPE, "aud")


def _good_times(claims: Claims) -> tuple[float, float]:
    """From when on and until when `check_times` lets these claims pass; never, where it must look at them."""
    begins = [claims[name] for name in ("nbf", "iat") if claims.get(name) is not None]
    expires_at = claims.get("exp", math.inf)
    if not all(map(_is_number, (*begins, expires_at))) or not _is_audience(claims.get("aud")):
        return math.inf, -math.inf
    return max(begins, default=-math.inf) - FUTURE_LEEWAY_SECONDS, expires_at


def _instant(claims: Claims, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if not _is_number(value):
        raise TokenError(TokenFault.CLAIM_TYPE, name)
    return float(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_audience(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(part, str) for part in cast("list[object]", value))
    return value is None or isinstance(value, str)


def _import_key(alg: str, jwk_text: str) -> Key:
    jwk = cast("dict[str, Any]", msgspec.json.decode(jwk_text))
    # what a key may be used for is decided by this ring: `key_ops: ["sign"]` must not keep it from verifying
    bare = {name: value for name, value in jwk.items() if name not in ("use", "key_ops", "ext", "alg", "kid")}
    return _KINDS[alg].import_key(bare)


_registries: dict[str, jws.JWSRegistry] = {
    alg: jws.JWSRegistry(algorithms=[alg], strict_check_header=False) for alg in _KINDS
}


def _registry(alg: str) -> jws.JWSRegistry:
    return _registries[alg]


def _sign(alg: str, kid: str | None, key: Key, claims: Mapping[str, Any], typ: str | None = "JWT") -> str:
    header: dict[str, Any] = {"alg": alg}
    if kid:
        header["kid"] = kid
    if typ:
        header["typ"] = typ
    return jws.serialize_compact(header, msgspec.json.encode(claims), key, registry=_registry(alg))
