"""POST /token?grant_type=id_token: an app has asked the provider by itself and brings what it was given."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import msgspec

from toft.auth.call import Call
from toft.auth.errors import AuthError, OAuthError, bad_request
from toft.auth.issue import session_response, start_session
from toft.auth.social import linking
from toft.auth.social.known import KNOWN, issuer_of
from toft.auth.social.person import Person, from_claims
from toft.auth.social.provider import verify_id_token
from toft.auth.unlink import require_linking
from toft.http.message import Response
from toft.protocol.worker import AuthProvider

_INVALID = "invalid request"


class IdTokenGrant(msgspec.Struct, frozen=True):
    """The body. nonce: as the app has drawn it; the token carries its hash."""

    provider: str = ""
    id_token: str = ""
    access_token: str = ""
    nonce: str = ""
    client_id: str = ""
    issuer: str = ""
    link_identity: bool = False

    def __repr__(self) -> str:
        return f"IdTokenGrant(provider={self.provider!r})"


async def grant(call: Call) -> Response:
    """A session for whom the token is about."""
    given = call.read(IdTokenGrant)
    if not given.id_token:
        raise OAuthError(_INVALID, "id_token required")
    if not given.provider and not (given.client_id and given.issuer):
        raise OAuthError(_INVALID, "provider or client_id and issuer required")
    name, settings = _find(call, given)
    person = await _prove(call, name, settings, given)
    async with call.transaction() as conn:
        if given.link_identity:
            signed = await call.require_first_party(conn)
            require_linking(call)
            user = await linking.link_to(call, conn, signed.user, person)
        else:
            user = await linking.settle(call, conn, person)
        await call.note(conn, user, "login", {"provider": name})
        issued = await start_session(call, conn, user, "oauth")
    return session_response(issued)


def _find(call: Call, given: IdTokenGrant) -> tuple[str, AuthProvider]:
    """The provider by name, or by its issuer and our name there. Raises `AuthError`."""
    for name, settings in call.context.settings.external.items():
        issuer = issuer_of(name, settings)
        by_issuer = given.issuer.rstrip("/") == issuer and given.client_id in settings.client_id.split(",")
        if name == given.provider or (not given.provider and by_issuer):
            if not issuer or (name not in KNOWN and not settings.url):
                break
            return name, settings
    raise bad_request(f"Provider ({given.provider or given.issuer}) is not enabled", "provider_disabled")


async def _prove(call: Call, name: str, settings: AuthProvider, given: IdTokenGrant) -> Person:
    try:
        issuer = await call.context.issuers.discover(issuer_of(name, settings))
        claims = await verify_id_token(call, issuer, given.id_token, settings)
    except AuthError as error:
        if error.status >= 500:
            call.report(error)
        raise OAuthError(_INVALID, "Bad ID token") from None
    if not settings.skip_nonce_check:
        _check_nonce(claims, given.nonce)
    _check_access_token(claims, given.access_token)
    person = from_claims(name, issuer.issuer, claims)
    if not person.email and not settings.email_optional:
        raise OAuthError(_INVALID, "The ID token has no email")
    return person


def _check_nonce(claims: dict[str, Any], nonce: str) -> None:
    """Both have one or neither; the token carries the hex SHA-256 of the app's."""
    told = claims.get("nonce")
    told = told if isinstance(told, str) else ""
    if bool(told) != bool(nonce):
        raise OAuthError(_INVALID, "Passed nonce and nonce in id_token should either both exist or not.")
    if nonce and not hmac.compare_digest(hashlib.sha256(nonce.encode()).hexdigest(), told):
        raise OAuthError("invalid nonce", "Nonces mismatch")


def _check_access_token(claims: dict[str, Any], access_token: str) -> None:
    """A token that names an access token belongs to that one alone. SHA-256 is what issuers hash with."""
    told = claims.get("at_hash")
    if not isinstance(told, str) or not access_token:
        return
    for digest in (hashlib.sha256, hashlib.sha384, hashlib.sha512):
        raw = digest(access_token.encode()).digest()
        half = base64.urlsafe_b64encode(raw[: len(raw) // 2]).rstrip(b"=").decode()
        if hmac.compare_digest(half, told):
            return
    raise OAuthError(_INVALID, "Bad ID token")
