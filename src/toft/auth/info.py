"""What anybody may know: that Auth is alive, what is switched on, and the public keys."""

from __future__ import annotations

from toft.auth.call import Call
from toft.auth.represent import json_response
from toft.http.message import Response

_PROVIDERS = (
    "apple", "azure", "bitbucket", "discord", "facebook", "figma", "fly", "github", "gitlab", "google",
    "kakao", "keycloak", "linkedin", "linkedin_oidc", "notion", "slack", "slack_oidc", "snapchat", "spotify",
    "twitch", "twitter", "workos", "x", "zoom",
)  # fmt: skip


async def health(call: Call) -> Response:
    """GET /health. The name is the one that clients look for."""
    return json_response(
        {
            "version": "toft",
            "name": "GoTrue",
            "description": "GoTrue is a user registration and authentication API",
        }
    )


async def settings(call: Call) -> Response:
    """GET /settings: what a sign-in page has to know."""
    given = call.context.settings
    external = {name: name in given.external for name in _PROVIDERS}
    external["anonymous_users"] = given.enable_anonymous_sign_ins
    external["email"] = given.email_enable_signup
    external["phone"] = given.sms_enable_signup
    return json_response(
        {
            "external": external,
            "disable_signup": not given.enable_signup,
            "mailer_autoconfirm": not given.email_enable_confirmations,
            "phone_autoconfirm": not given.sms_enable_confirmations,
            "sms_provider": "",
            "saml_enabled": False,
            "saml_private_key_next_configured": False,
            "passkeys_enabled": False,
        }
    )


async def jwks(call: Call) -> Response:
    """GET /.well-known/jwks.json: the public keys that verify this project's tokens."""
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"public, max-age=600")]
    return Response(200, headers, call.context.ring.public_jwks())
