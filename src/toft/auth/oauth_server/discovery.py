"""What clients read first: where everything is, and what is supported."""

from __future__ import annotations

from toft.auth.call import Call
from toft.auth.oauth_server.clients import require_enabled
from toft.auth.represent import json_response
from toft.http.message import Response

SCOPES = ("openid", "profile", "email", "phone", "offline_access")


async def openid_configuration(call: Call) -> Response:
    """GET /.well-known/openid-configuration: also where the OAuth server is off, for the keys."""
    return _document(call)


async def authorization_server(call: Call) -> Response:
    """GET /.well-known/oauth-authorization-server (RFC 8414)."""
    require_enabled(call)
    return _document(call)


def issuer_of(call: Call) -> str:
    """Who signs the tokens."""
    return call.context.settings.jwt_issuer or call.context.external_url


def _document(call: Call) -> Response:
    base = issuer_of(call).rstrip("/")
    document: dict[str, object] = {
        "issuer": issuer_of(call),
        "authorization_endpoint": f"{base}/oauth/authorize",
        "token_endpoint": f"{base}/oauth/token",
        "jwks_uri": f"{base}/.well-known/jwks.json",
        "userinfo_endpoint": f"{base}/oauth/userinfo",
        "revocation_endpoint": f"{base}/oauth/revoke",
    }
    if call.context.settings.oauth_server_allow_dynamic_registration:
        document["registration_endpoint"] = f"{base}/oauth/clients/register"
    document |= {
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256", "HS256", "ES256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "code_challenge_methods_supported": ["S256", "plain"],
        "claims_supported": [
            "sub", "aud", "iss", "exp", "iat", "auth_time", "nonce", "email", "email_verified",
            "phone_number", "phone_number_verified", "name", "picture", "preferred_username", "updated_at",
        ],
    }  # fmt: skip
    return json_response(document, headers=[(b"cache-control", b"public, max-age=600")])
