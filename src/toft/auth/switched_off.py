"""Features that are not here, answered as upstream answers when they are switched off."""

from __future__ import annotations

from toft.auth.call import Call
from toft.auth.errors import not_found
from toft.auth.represent import json_response
from toft.http.message import Response


async def single_sign_on(call: Call) -> Response:
    """POST /sso and what belongs to it."""
    raise not_found("saml_provider_disabled", "SAML 2.0 is disabled")


async def list_sso_providers(call: Call) -> Response:
    """GET /admin/sso/providers: none."""
    async with call.context.pool.lend() as conn:
        await call.require_admin(conn)
    return json_response({"items": []})


async def sso_provider(call: Call) -> Response:
    """One of the providers that there are none of."""
    async with call.context.pool.lend() as conn:
        await call.require_admin(conn)
    raise not_found("sso_provider_not_found", "SSO provider not found")


async def custom_providers(call: Call) -> Response:
    """/admin/custom-providers."""
    async with call.context.pool.lend() as conn:
        await call.require_admin(conn)
    raise not_found("feature_disabled", "Custom providers are disabled")


async def passkeys(call: Call) -> Response:
    """/passkeys."""
    raise not_found("passkey_disabled", "Passkeys are disabled")
