"""POST /oauth/token and /oauth/revoke, GET /oauth/userinfo: what a client gets, gives back and asks for."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import unquote_plus

import msgspec

from toft.auth.call import Call, parse_uuid
from toft.auth.codes import Challenge, check_verifier
from toft.auth.errors import AuthError, OAuthError, bad_request
from toft.auth.issue import Issued, Origin, start_session
from toft.auth.model import User
from toft.auth.oauth_server.clients import require_enabled
from toft.auth.oauth_server.discovery import issuer_of
from toft.auth.oauth_server.model import Authorization, Client
from toft.auth.oauth_server.registration import is_secret
from toft.auth.records import oauth, sessions, users
from toft.auth.represent import json_response
from toft.auth.token import refresh
from toft.http.message import Response
from toft.pg.typed import TypedConnection

METHOD = "oauth_provider/authorization_code"
ID_TOKEN_SECONDS = 3600
_NO_STORE = [(b"cache-control", b"no-store"), (b"pragma", b"no-cache")]


class TokenRequest(msgspec.Struct, frozen=True):
    grant_type: str = ""
    code: str = ""
    code_verifier: str = ""
    redirect_uri: str = ""
    resource: str = ""
    refresh_token: str = ""
    token: str = ""
    client_id: str = ""
    client_secret: str = ""


async def token(call: Call) -> Response:
    """POST /oauth/token."""
    require_enabled(call)
    wanted = call.read(TokenRequest)
    async with call.context.pool.lend() as conn:
        client = await _authenticate(call, conn, wanted)
    if not wanted.grant_type:
        raise OAuthError("invalid_request", "grant_type is required")
    if wanted.grant_type not in client.grant_types:
        raise OAuthError("unsupported_grant_type", "grant_type is not supported for this client")
    if wanted.grant_type == "refresh_token":
        if not wanted.refresh_token:
            raise OAuthError("invalid_request", "refresh_token is required")
        issued = await _refresh(call, client, wanted.refresh_token)
        return json_response(_token_json(issued), headers=_NO_STORE)
    async with call.transaction() as conn:
        given, user = await _redeem(call, conn, client, wanted)
        issued = await start_session(call, conn, user, METHOD, Origin(client.id, given.scope))
    body = _token_json(issued)
    if "openid" in given.scope.split():
        body["id_token"] = _make_id_token(call, client, given, issued)
    return json_response(body, headers=_NO_STORE)


async def revoke(call: Call) -> Response:
    """POST /oauth/revoke (RFC 7009): end the session of a refresh token of this client."""
    require_enabled(call)
    wanted = call.read(TokenRequest)
    async with call.transaction() as conn:
        client = await _authenticate(call, conn, wanted)
        shown = await sessions.load_token(conn, wanted.token) if wanted.token else None
        session = await sessions.load_session(conn, shown.session_id) if shown and shown.session_id else None
        if session is not None and session.oauth_client_id == client.id:
            await sessions.delete_session(conn, session.id)
    return json_response({}, headers=_NO_STORE)


async def userinfo(call: Call) -> Response:
    """GET /oauth/userinfo: what the session's scopes let the client know."""
    require_enabled(call)
    async with call.context.pool.lend() as conn:
        signed = await call.require_user(conn)
    scopes = set(signed.session.scopes.split()) if signed.session is not None else set[str]()
    return json_response({"sub": str(signed.user.id), **_profile(signed.user, scopes)})


def _profile(user: User, scopes: set[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if "email" in scopes:
        out["email"] = user.email
        if user.email_confirmed_at is not None:
            out["email_verified"] = True
    if "profile" in scopes:
        out |= _describe(user)
        out["user_metadata"] = user.user_metadata
    if "phone" in scopes:
        out["phone"] = user.phone
        if user.phone_confirmed_at is not None:
            out["phone_verified"] = True
    return out


def _describe(user: User) -> dict[str, Any]:
    known = user.user_metadata
    out: dict[str, Any] = {"name": known.get("name") or user.email}
    picture = known.get("picture") or known.get("avatar_url")
    if picture:
        out["picture"] = picture
    handle = known.get("preferred_username") or known.get("username")
    if handle:
        out["preferred_username"] = handle
    if user.updated_at is not None:
        out["updated_at"] = int(user.updated_at.timestamp())
    return out


async def _authenticate(call: Call, conn: TypedConnection, wanted: TokenRequest) -> Client:
    """The client, by the method that it is registered for."""
    client_id, secret, method = _read_credentials(call, wanted)
    row_id = parse_uuid(client_id)
    client = await oauth.load_client(conn, row_id) if row_id is not None else None
    is_known = client is not None and client.auth_method == method
    if client is None or not is_known or (method != "none" and not is_secret(client, secret)):
        raise bad_request("Invalid client credentials", "invalid_credentials")
    return client


def _read_credentials(call: Call, wanted: TokenRequest) -> tuple[str, str, str]:
    header = call.request.headers.get(b"authorization") or ""
    if header.lower().startswith("basic "):
        try:
            text = base64.b64decode(header[6:].strip(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return "", "", "client_secret_basic"
        client_id, _, secret = text.partition(":")
        return unquote_plus(client_id), unquote_plus(secret), "client_secret_basic"
    method = "client_secret_post" if wanted.client_secret else "none"
    return wanted.client_id, wanted.client_secret, method


async def _redeem(
    call: Call, conn: TypedConnection, client: Client, wanted: TokenRequest
) -> tuple[Authorization, User]:
    """The request that the code belongs to, taken away, and its user."""
    if not wanted.code or not wanted.code_verifier:
        raise OAuthError("invalid_request", "code and code_verifier are required")
    given = await oauth.lock_authorization_by_code(conn, wanted.code)
    if given is None or given.status != "approved" or given.client_id != client.id:
        raise OAuthError("invalid_grant", "Invalid authorization code")
    if call.now > given.expires_at:
        raise OAuthError("invalid_grant", "Authorization code has expired")
    if wanted.redirect_uri and wanted.redirect_uri != given.redirect_uri:
        raise OAuthError("invalid_grant", "redirect_uri does not match")
    if wanted.resource and given.resource and wanted.resource != given.resource:
        raise OAuthError("invalid_grant", "resource does not match")
    try:
        check_verifier(Challenge(given.challenge, given.challenge_method), wanted.code_verifier)
    except AuthError:
        raise OAuthError("invalid_grant", "PKCE verification failed") from None
    user = await users.load_user(conn, given.user_id) if given.user_id is not None else None
    if user is None:
        raise OAuthError("invalid_grant", "User not found")
    if user.is_banned(call.now):
        raise OAuthError("access_denied", "User is banned")
    await oauth.delete_authorization(conn, given.id)
    return given, user


async def _refresh(call: Call, client: Client, refresh_token: str) -> Issued:
    try:
        return await refresh(call, refresh_token, client_id=str(client.id))
    except AuthError as error:
        if error.status == 400 and error.code != "refresh_token_not_found":
            raise OAuthError("invalid_grant", error.message) from None
        raise


def _token_json(issued: Issued) -> dict[str, Any]:
    return {
        "access_token": issued.access_token,
        "token_type": "bearer",
        "expires_in": issued.expires_in,
        "refresh_token": issued.refresh_token,
    }


def _make_id_token(call: Call, client: Client, given: Authorization, issued: Issued) -> str:
    user, scopes = issued.user, set(given.scope.split())
    now = int(call.context.clock.unix())
    signed_in_at = user.last_sign_in_at or call.now
    claims: dict[str, Any] = {
        "iss": issuer_of(call),
        "sub": str(user.id),
        "aud": str(client.id),
        "exp": now + ID_TOKEN_SECONDS,
        "iat": now,
        "auth_time": int(signed_in_at.timestamp()),
        "client_id": str(client.id),
        "email_verified": user.email_confirmed_at is not None,
        "phone_number_verified": user.phone_confirmed_at is not None,
    }
    if given.nonce:
        claims["nonce"] = given.nonce
    if "email" in scopes:
        claims["email"] = user.email
    if "phone" in scopes and user.phone:
        claims["phone_number"] = user.phone
    if "profile" in scopes:
        claims |= _describe(user)
    return call.context.ring.sign(claims)
