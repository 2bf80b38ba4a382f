"""GET /oauth/authorize: a client sends a browser; what is wrong with the request goes back to the client.

Before client and redirect address are known to belong together, nothing is redirected anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlsplit

from toft.auth.call import Call, parse_uuid
from toft.auth.codes import Challenge, parse_challenge
from toft.auth.errors import AuthError, OAuthError, bad_request
from toft.auth.oauth_server.clients import client_not_found, require_enabled
from toft.auth.oauth_server.discovery import SCOPES
from toft.auth.oauth_server.model import Authorization, Client
from toft.auth.records import oauth
from toft.auth.redirects import add_query
from toft.http.message import Response

LIFETIME_SECONDS = 600
_DEFAULT_SCOPE = "email"
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#: where our own consent page is, when the project names none
OWN_PAGE = "/oauth/consent"


async def authorize(call: Call) -> Response:
    """Remember the request and send the browser to the consent page."""
    require_enabled(call)
    query = call.query
    client_id = parse_uuid(query.get("client_id", ""))
    redirect_uri = query.get("redirect_uri", "")
    if client_id is None:
        raise bad_request("client_id is required and must be a UUID")
    if not redirect_uri:
        raise bad_request("redirect_uri is required")
    async with call.transaction() as conn:
        client = await oauth.load_client(conn, client_id)
        if client is None:
            raise AuthError(400, client_not_found().code, "OAuth client not found")
        if redirect_uri not in client.redirect_uris:
            raise bad_request("redirect_uri is not registered for this client")
        try:
            wanted = _read_request(call, client, query)
        except OAuthError as error:
            members = {"error": error.error, "error_description": error.description}
            return redirect_back(redirect_uri, members, query.get("state", ""))
        await oauth.insert_authorization(conn, wanted)
    return _found(_page_address(call, wanted.authorization_id))


def redirect_back(redirect_uri: str, members: Mapping[str, str], state: str) -> Response:
    """Send the browser back to the client."""
    return _found(answer_address(redirect_uri, members, state))


def answer_address(redirect_uri: str, members: Mapping[str, str], state: str) -> str:
    """The client's address with an answer; its own query is kept."""
    return add_query(redirect_uri, {**members, **({"state": state} if state else {})})


def _read_request(call: Call, client: Client, query: Mapping[str, str]) -> Authorization:
    if query.get("response_type", "code") != "code":
        raise OAuthError("unsupported_response_type", "Only response_type=code is supported")
    scope = " ".join(dict.fromkeys(query.get("scope", "").split())) or _DEFAULT_SCOPE
    unknown = [word for word in scope.split() if word not in SCOPES]
    if unknown:
        raise OAuthError("invalid_scope", f"Unsupported scope: {' '.join(unknown)}")
    if "openid" in scope.split() and call.context.ring.algorithm == "HS256":
        raise OAuthError("invalid_scope", "openid needs an asymmetric signing key")
    resource = query.get("resource", "")
    if resource and not _is_resource(resource):
        raise OAuthError("invalid_target", "resource must be an absolute URI without fragment")
    challenge = _read_challenge(query)
    if any(len(query.get(name, "")) > most for name, most in (("state", 4096), ("nonce", 255))):
        raise OAuthError("invalid_request", "state or nonce is too long")
    return Authorization(
        id=call.context.new_id(),
        authorization_id="".join(_ALPHABET[byte % 62] for byte in call.context.entropy.bytes(32)),
        client_id=client.id,
        user_id=None,
        redirect_uri=query["redirect_uri"],
        scope=scope,
        state=query.get("state", ""),
        resource=resource,
        challenge=challenge.text,
        challenge_method=challenge.method,
        status="pending",
        code="",
        created_at=call.now,
        expires_at=call.now + timedelta(seconds=LIFETIME_SECONDS),
        nonce=query.get("nonce", ""),
    )


def _read_challenge(query: Mapping[str, str]) -> Challenge:
    try:
        method = query.get("code_challenge_method", "")
        challenge = parse_challenge(query.get("code_challenge", ""), method)
    except AuthError as error:
        raise OAuthError("invalid_request", error.message) from None
    if challenge is None:
        raise OAuthError("invalid_request", "PKCE is required: code_challenge and code_challenge_method")
    return challenge


def _is_resource(resource: str) -> bool:
    """RFC 8707: absolute and without fragment. A query is allowed; MCP clients send what they use."""
    if len(resource) > 2048 or "#" in resource or not resource.isprintable() or " " in resource:
        return False
    try:
        parts = urlsplit(resource)
    except ValueError:
        return False
    return bool(parts.scheme) and bool(parts.netloc or parts.path)


def _page_address(call: Call, authorization_id: str) -> str:
    settings = call.context.settings
    path = settings.oauth_server_authorization_path
    if path:
        address = settings.site_url.rstrip("/") + "/" + path.lstrip("/")
    else:
        address = call.context.external_url + OWN_PAGE
    return add_query(address, {"authorization_id": authorization_id})


def _found(address: str) -> Response:
    return Response(302, [(b"location", address.encode("ascii", "ignore")), (b"cache-control", b"no-store")])
