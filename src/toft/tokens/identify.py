"""Pure: from a request's headers to its caller, by the rules of Supabase's door.

1. An Authorization header that carries no opaque key counts as it is.
2. Else an opaque key that is the project's becomes the token of its role.
3. Else the `apikey` itself counts as the bearer's token, except for Auth, where it is no bearer at all.

A missing key is let through, as the local stack does; an opaque key that is not the project's is refused,
because no service could make sense of it.
"""

from __future__ import annotations

import hmac
from typing import Any, Literal

import msgspec

from toft.http.message import Headers
from toft.tokens.apikey import is_opaque
from toft.tokens.caller import Caller, Refusal, TokenError
from toft.tokens.jwt import KeyRing, Verified

type Service = Literal["rest", "auth", "storage"]

_ANON_CLAIMS: dict[str, Any] = {"role": "anon"}
_ANON_CLAIMS_JSON = b'{"role":"anon"}'
#: the Data API allows for clocks that differ (its spec, section 3); the other two services do not
_LEEWAY_SECONDS: dict[Service, float] = {"rest": 30, "auth": 0, "storage": 0}


class ProjectKeys(msgspec.Struct, frozen=True):
    """The keys of one project, as its door compares them."""

    ring: KeyRing
    anon_key: str
    service_role_key: str
    publishable_key: str
    secret_key: str

    def __repr__(self) -> str:
        return "ProjectKeys(…)"


def identify(
    headers: Headers, service: Service, keys: ProjectKeys, now: float, query_key: str | None = None
) -> Caller | Refusal:
    """Who sends a request with these headers. `query_key`: an `apikey` from the query, if there was one."""
    token = choose_token(headers, service, keys, query_key)
    if isinstance(token, Refusal):
        return token
    return caller_of(token, keys.ring, now, _LEEWAY_SECONDS[service])


def choose_token(
    headers: Headers, service: Service, keys: ProjectKeys, query_key: str | None = None
) -> str | Refusal | None:
    """The token that counts, or None for no bearer at all."""
    authorization = headers.get(b"authorization")
    if authorization is not None and not authorization.startswith("Bearer sb_"):
        return _bearer(authorization)
    key = headers.get(b"apikey") or query_key
    if not key:
        if authorization is None:
            return None
        key = authorization[len("Bearer ") :]
    if _same(key, keys.secret_key):
        return keys.service_role_key
    if _same(key, keys.publishable_key):
        return keys.anon_key
    if is_opaque(key):
        return Refusal.INVALID_API_KEY
    return None if service == "auth" else key


def caller_of(token: str | None, ring: KeyRing, now: float, leeway_seconds: float = 0) -> Caller:
    """The caller that bears `token`; one whose token fails is anon, and carries the error."""
    if token is None:
        return Caller(role="anon", claims=_ANON_CLAIMS, claims_json=_ANON_CLAIMS_JSON, token=None)
    try:
        verified = ring.read(token)
        verified.check_times(now, leeway_seconds)
    except TokenError as error:
        return Caller(
            role="anon", claims=_ANON_CLAIMS, claims_json=_ANON_CLAIMS_JSON, token=token, error=error
        )
    if verified.caller is None:
        verified.caller = _bearer_of(verified, token)
    return verified.caller


def _bearer_of(verified: Verified, token: str) -> Caller:
    claims, claims_json = verified.claims, verified.claims_json
    role = claims.get("role")
    if role is None:
        role = "anon"
        claims = {**claims, "role": role}
        claims_json = msgspec.json.encode(claims)
    elif not isinstance(role, str):
        role = msgspec.json.encode(role).decode()
    return Caller(
        role=role,
        claims=claims,
        claims_json=claims_json,
        token=token,
        is_secret_key=role == "service_role",
    )


def _bearer(authorization: str) -> str | None:
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode(), known.encode())
