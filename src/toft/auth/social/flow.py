"""Social logins: the way to a provider, and the way back."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from toft.auth.call import Call, parse_uuid
from toft.auth.codes import parse_challenge
from toft.auth.errors import AuthError, bad_request, forbidden
from toft.auth.issue import start_session
from toft.auth.mailer import wanted_redirect
from toft.auth.model import Flow
from toft.auth.records import flows, users
from toft.auth.redirects import add_fragment, add_query
from toft.auth.represent import json_response
from toft.auth.social import linking
from toft.auth.social.known import is_supported
from toft.auth.social.person import Grant
from toft.auth.social.provider import Provider, RealProvider
from toft.auth.social.stand_in import StandIn
from toft.auth.unlink import require_linking
from toft.auth.verify import refusal_members, session_members
from toft.http.message import Response
from toft.protocol.worker import AuthProvider

#: how long somebody may take at the provider
_FLOW_SECONDS: Final = 300
#: parameters that this server decides, whatever the request says
_CONTROLLED: Final = frozenset(
    {
        "client_id", "client_secret", "redirect_uri", "response_type", "state", "code_challenge",
        "code_challenge_method", "code_verifier", "provider", "redirect_to", "scope",
        "invite_token", "skip_http_redirect",
    }
)  # fmt: skip


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
    site = call.context.settings.site_url
    if flow is None or flow.code_issued_at is not None or flow.authentication_method != "oauth":
        return _refuse(site, bad_request("OAuth state not found or expired", "bad_oauth_state"))
    if call.now > flow.created_at + timedelta(seconds=_FLOW_SECONDS):
        return _refuse(site, bad_request("OAuth state has expired", "bad_oauth_state"))
    target = flow.referrer or site
    try:
        return _found(await _end(call, flow, given, target))
    except AuthError as error:
        call.report(error)
        return _refuse(target, error)


async def _end(call: Call, flow: Flow, given: dict[str, str], target: str) -> str:
    """Where the browser goes when somebody has signed in. Raises `AuthError`."""
    if "error" in given:
        words = given.get("error_description") or given["error"]
        told = forbidden("bad_oauth_callback", words)
        raise told if given["error"] == "access_denied" else bad_request(words, "bad_oauth_callback")
    if not given.get("code"):
        raise bad_request("OAuth callback without a code", "bad_oauth_callback")
    settings = call.context.settings.external.get(flow.provider_type)
    if settings is None:
        raise bad_request("Unsupported provider: provider is not enabled", "oauth_provider_not_supported")
    provider = _provider(flow.provider_type, settings)
    grant = await provider.exchange(call, str(flow.id), given["code"])
    if not grant.person.email and not settings.email_optional:
        raise AuthError(500, "unexpected_failure", "Error getting user email from external provider")
    return await _sign_in(call, flow, grant, target)


async def _sign_in(call: Call, flow: Flow, grant: Grant, target: str) -> str:
    async with call.transaction() as conn:
        # the browser may have come twice with the same answer: only one of them ends the flow
        locked = await flows.load_flow(conn, flow.id, locks=True)
        if locked is None or locked.code_issued_at is not None:
            raise bad_request("OAuth state not found or expired", "bad_oauth_state")
        if flow.linking_target_id is not None:
            linked = await users.load_user(conn, flow.linking_target_id)
            if linked is None:
                raise forbidden("user_not_found", "The user to link to does not exist any more")
            user = await linking.link_to(call, conn, linked, grant.person)
        else:
            user = await linking.settle(call, conn, grant.person)
        if flow.challenge:
            await flows.note_signed_in(
                conn, flow.id, user.id, grant.access_token, grant.refresh_token, call.now
            )  # fmt: skip
            return add_query(target, {"code": flow.auth_code})
        await flows.delete_flow(conn, flow.id)
        await call.note(conn, user, "login", {"provider": grant.person.provider})
        issued = await start_session(call, conn, user, "oauth")
    members = session_members(issued, "")
    members |= {"provider_token": grant.access_token} if grant.access_token else {}
    members |= {"provider_refresh_token": grant.refresh_token} if grant.refresh_token else {}
    del members["type"]
    return add_fragment(target, members)


async def _begin(call: Call, linking_to: str | None) -> str:
    name = call.query.get("provider", "")
    settings = call.context.settings.external.get(name)
    if settings is None or not is_supported(name, settings):
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
    extra = {key: value for key, value in call.query.items() if key not in _CONTROLLED}
    address = await _provider(name, settings).authorize_url(call, str(flow.id), extra)
    async with call.transaction() as conn:
        await flows.delete_old_flows(conn, call.now - timedelta(days=1))
        await flows.insert_flow(conn, flow)
    return address


def _provider(name: str, settings: AuthProvider) -> Provider:
    return StandIn(name) if settings.is_played else RealProvider(name, settings)


def _found(address: str) -> Response:
    return Response(302, [(b"location", address.encode("ascii", "ignore"))])


def _refuse(target: str, error: AuthError) -> Response:
    members = refusal_members(error)
    address = add_query(add_fragment(target, {**members, "sb": ""}), members)
    return Response(303, [(b"location", address.encode("ascii", "ignore"))])
