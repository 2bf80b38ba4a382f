"""Social logins: the way to a provider, and the way back."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

import msgspec

from toft.auth.call import Call, parse_uuid
from toft.auth.codes import parse_challenge
from toft.auth.errors import AuthError, bad_request
from toft.auth.mailer import wanted_redirect
from toft.auth.model import Flow
from toft.auth.records import flows
from toft.auth.redirects import add_fragment, add_query
from toft.auth.represent import json_response
from toft.auth.unlink import require_linking
from toft.http.message import Response
from toft.protocol.worker import AuthProvider

#: parameters that this server decides, whatever the request says
_CONTROLLED: Final = frozenset(
    {
        "client_id", "client_secret", "redirect_uri", "response_type", "state", "code_challenge",
        "code_challenge_method", "code_verifier", "provider", "redirect_to", "scopes", "scope",
        "invite_token", "skip_http_redirect",
    }
)  # fmt: skip


class _Known(msgspec.Struct, frozen=True):
    """Where a provider lets people sign in, and what is asked of it. `{url}`: the configured base."""

    authorize_url: str
    scopes: str


_KNOWN: Final = {
    "apple": _Known("https://appleid.apple.com/auth/authorize", "email name"),
    "azure": _Known("{url}/oauth2/v2.0/authorize", "openid"),
    "bitbucket": _Known("https://bitbucket.org/site/oauth2/authorize", "account email"),
    "discord": _Known("https://discord.com/api/oauth2/authorize", "email identify"),
    "facebook": _Known("https://www.facebook.com/dialog/oauth", "email"),
    "figma": _Known("https://www.figma.com/oauth", "current_user:read"),
    "github": _Known("{url}/login/oauth/authorize", "user:email"),
    "gitlab": _Known("{url}/oauth/authorize", "read_user"),
    "google": _Known("https://accounts.google.com/o/oauth2/v2/auth", "email profile"),
    "keycloak": _Known("{url}/protocol/openid-connect/auth", "profile email"),
    "linkedin_oidc": _Known("https://www.linkedin.com/oauth/v2/authorization", "openid email profile"),
    "notion": _Known("https://api.notion.com/v1/oauth/authorize", ""),
    "slack_oidc": _Known("https://slack.com/openid/connect/authorize", "openid email profile"),
    "spotify": _Known("https://accounts.spotify.com/authorize", "user-read-email"),
    "twitch": _Known("https://id.twitch.tv/oauth2/authorize", "user:read:email"),
    "workos": _Known("https://api.workos.com/sso/authorize", ""),
    "zoom": _Known("https://zoom.us/oauth/authorize", ""),
}
_USUAL_URLS: Final = {
    "azure": "https://login.microsoftonline.com/common",
    "github": "https://github.com",
    "gitlab": "https://gitlab.com",
}


async def authorize(call: Call) -> Response:
    """GET /authorize: a browser is sent to the provider."""
    return _found(await _begin(call, None))


async def link_identity(call: Call) -> Response:
    """GET /user/identities/authorize: the same, for a user who is signed in already."""
    async with call.context.pool.lend() as conn:
        signed = await call.require_first_party(conn)
    require_linking(call)
    address = await _begin(call, str(signed.user.id))
    if call.query.get("skip_http_redirect") == "true":
        return json_response({"url": address})
    return _found(address)


async def callback(call: Call) -> Response:
    """GET and POST /callback: the provider sends the browser back."""
    given = {**call.query, **{name: str(value) for name, value in call.fields.items()}}
    flow_id = parse_uuid(given.get("state", ""))
    async with call.context.pool.lend() as conn:
        flow = await flows.load_flow(conn, flow_id) if flow_id is not None else None
    if flow is None:
        error = AuthError(400, "bad_oauth_state", "OAuth state not found or expired")
        return _refuse(call.context.settings.site_url, error)
    if "error" in given:
        told = AuthError(400, "bad_oauth_callback", given.get("error_description") or given["error"])
        return _refuse(flow.referrer or call.context.settings.site_url, told)
    error = AuthError(400, "bad_oauth_callback", "This provider cannot be reached from here")
    return _refuse(flow.referrer or call.context.settings.site_url, error)


async def _begin(call: Call, linking_to: str | None) -> str:
    name = call.query.get("provider", "")
    provider = call.context.settings.external.get(name)
    known = _KNOWN.get(name)
    if provider is None or known is None:
        raise bad_request("Unsupported provider: provider is not enabled")
    challenge = parse_challenge(
        call.query.get("code_challenge", ""), call.query.get("code_challenge_method", "")
    )  # fmt: skip
    flow = Flow(
        id=call.context.new_id(),
        user_id=None,
        auth_code=str(call.context.new_id()) if challenge is not None else "",
        challenge_method=challenge.method if challenge is not None else "",
        challenge=challenge.text if challenge is not None else "",
        provider_type=name,
        provider_access_token="",
        provider_refresh_token="",
        authentication_method="oauth",
        created_at=call.now,
        code_issued_at=None,
        referrer=wanted_redirect(call),
        linking_target_id=parse_uuid(linking_to) if linking_to is not None else None,
    )
    async with call.transaction() as conn:
        await flows.insert_flow(conn, flow)
    return _address(call, name, provider, known, str(flow.id))


def _address(call: Call, name: str, provider: AuthProvider, known: _Known, state: str) -> str:
    base = (provider.url or _USUAL_URLS.get(name, "")).rstrip("/")
    members = {
        **{key: value for key, value in call.query.items() if key not in _CONTROLLED},
        "client_id": provider.client_id.partition(",")[0],
        "redirect_uri": provider.redirect_uri or f"{call.context.external_url}/callback",
        "response_type": "code",
        "scope": f"{known.scopes} {call.query.get('scopes', '')}".strip(),
        "state": state,
    }
    return f"{known.authorize_url.replace('{url}', base)}?{urlencode(sorted(members.items()))}"


def _found(address: str) -> Response:
    return Response(302, [(b"location", address.encode("ascii", "ignore"))])


def _refuse(target: str, error: AuthError) -> Response:
    members = {
        "error": "invalid_request",
        "error_code": error.code,
        "error_description": error.message,
    }
    address = add_query(add_fragment(target, {**members, "sb": ""}), members)
    return Response(303, [(b"location", address.encode("ascii", "ignore"))])
