"""Pure: the tokens that signed URLs carry: what they allow, and whether one allows what it is used for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from toft.storage.errors import invalid_signature, invalid_token, word_token_error
from toft.tokens.caller import TokenError
from toft.tokens.jwt import KeyRing

type Scope = Literal["download", "upload"]


class Grant(msgspec.Struct, frozen=True):
    """What the bearer of a signed URL may do: read or write one object.

    transformations: of an image, as `width:200,height:100`. is_upsert and owner: for uploads.
    """

    bucket: str
    key: str
    scope: Scope
    expires_at: int
    transformations: str = ""
    is_upsert: bool = False
    owner: str | None = None


def sign(ring: KeyRing, grant: Grant, now: float) -> str:
    """The token. Nothing of a request gets in but what is named here."""
    claims: dict[str, Any] = {"url": f"{grant.bucket}/{grant.key}", "scope": grant.scope}
    if grant.scope == "upload":
        claims["upsert"] = grant.is_upsert
        if grant.owner is not None:
            claims["owner"] = grant.owner
    elif grant.transformations:
        claims["transformations"] = grant.transformations
    claims["iat"] = int(now)
    claims["exp"] = grant.expires_at
    return ring.sign_symmetric(claims)


def open_grant(ring: KeyRing, token: str, bucket: str, key: str, scope: Scope, now: float) -> Grant:
    """What the token allows, if that is `scope` on this object. Raises `StorageError`."""
    try:
        claims = ring.verify(token, now)
    except TokenError as error:
        raise invalid_token(word_token_error(error)) from None
    if claims.get("url") != f"{bucket}/{key}":
        raise invalid_signature()
    if _scope_of(claims) != scope:
        raise invalid_signature(f"Token is not scoped for {scope}")
    owner = claims.get("owner")
    transformations = claims.get("transformations")
    expires_at = claims.get("exp")
    return Grant(
        bucket=bucket,
        key=key,
        scope=scope,
        expires_at=int(expires_at) if isinstance(expires_at, int | float) else 0,
        transformations=transformations if isinstance(transformations, str) else "",
        is_upsert=claims.get("upsert") is True,
        owner=owner if isinstance(owner, str) else None,
    )


def _scope_of(claims: Mapping[str, Any]) -> str:
    """Older tokens have no scope: those that speak of `upsert` are for uploads."""
    scope = claims.get("scope")
    if isinstance(scope, str):
        return scope
    return "upload" if "upsert" in claims else "download"
