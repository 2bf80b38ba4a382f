"""Pure: tokens that another issuer has signed, verified with the keys that it publishes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, KeySetSerialization

from toft.tokens.caller import TokenError, TokenFault
from toft.tokens.jwt import check_times, read_header

#: what an issuer may sign with: nothing symmetric, since its keys are public
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA")
#: clocks of other machines may differ by so much
_LEEWAY_SECONDS = 30


def verify_foreign(
    token: str, keys: dict[str, Any], issuer: str, audiences: Sequence[str], now: float
) -> dict[str, Any]:
    """The claims of a token that this issuer made for one of these audiences.

    keys: a JWK set as published. Raises `TokenError`; its detail is a sentence for the log.
    """
    if read_header(token).get("alg") not in ALGORITHMS:
        raise TokenError(TokenFault.ALGORITHM, "it is signed by no public key")
    try:
        published = KeySet.import_key_set(cast("KeySetSerialization", keys))
        registry = jws.JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
        opened = jws.deserialize_compact(token, published, registry=registry)
        claims = msgspec.json.decode(opened.payload)
    except (JoseError, ValueError, TypeError, KeyError, RecursionError, msgspec.DecodeError):
        raise TokenError(TokenFault.NO_KEY, "no key of its issuer has signed it") from None
    if not isinstance(claims, dict):
        raise TokenError(TokenFault.CLAIMS, "its claims are no object")
    claims = cast("dict[str, Any]", claims)
    if claims.get("iss") != issuer:
        raise TokenError(TokenFault.CLAIMS, f"it is not from {issuer}")
    named: object = claims.get("aud")
    told = {named} if isinstance(named, str) else set(cast("list[object]", named or []))
    if not told & set(audiences):
        raise TokenError(TokenFault.AUDIENCE, "it is meant for another client")
    if claims.get("exp") is None:
        raise TokenError(TokenFault.CLAIMS, "it never expires")
    check_times(claims, now, _LEEWAY_SECONDS)
    return claims
