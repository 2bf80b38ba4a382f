"""What a signed-in user is asked and answers: details, consent, and the grants that come of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from toft.auth.call import Call, parse_uuid
from toft.auth.errors import AuthError, bad_request, not_found
from toft.auth.model import User
from toft.auth.oauth_server.authorize import answer_address
from toft.auth.oauth_server.clients import client_not_found, require_enabled
from toft.auth.oauth_server.model import Authorization, Client
from toft.auth.oauth_server.registration import client_summary
from toft.auth.records import oauth
from toft.auth.redirects import is_allowed
from toft.auth.represent import empty_response, json_response, write_instant
from toft.http.message import Response
from toft.pg.typed import TypedConnection


class Decision(msgspec.Struct, frozen=True):
    action: str = ""


class Asked(msgspec.Struct, frozen=True):
    """A request that waits for its user's answer, or the address that it ended with."""

    authorization: Authorization
    client: Client
    redirect_url: str | None = None


async def read_details(call: Call) -> Response:
    """GET /oauth/authorizations/{authorization_id}."""
    require_enabled(call)
    _check_origin(call)
    async with call.transaction() as conn:
        signed = await call.require_first_party(conn)
        asked = await open_authorization(call, conn, signed.user, call.path["authorization_id"])
    if asked.redirect_url is not None:
        return json_response({"redirect_url": asked.redirect_url})
    given = asked.authorization
    return json_response(
        {
            "authorization_id": given.authorization_id,
            "redirect_uri": given.redirect_uri,
            "client": client_summary(asked.client),
            "user": {"id": str(signed.user.id), "email": signed.user.email},
            "scope": given.scope,
        }
    )


async def decide(call: Call) -> Response:
    """POST /oauth/authorizations/{authorization_id}/consent."""
    require_enabled(call)
    _check_origin(call)
    action = call.read(Decision).action
    if action not in ("approve", "deny"):
        raise bad_request("action must be approve or deny")
    async with call.transaction() as conn:
        signed = await call.require_first_party(conn)
        address = await settle(call, conn, signed.user.id, call.path["authorization_id"], action == "approve")
    return json_response({"redirect_url": address})


async def open_authorization(call: Call, conn: TypedConnection, user: User, authorization_id: str) -> Asked:
    """Bind the request to its first caller. Who has agreed to all of it before is not asked again."""
    given = await _lock_pending(call, conn, authorization_id)
    client = await oauth.load_client(conn, given.client_id)
    if client is None:
        raise client_not_found()
    if given.user_id is None:
        await oauth.bind_authorization(conn, given.id, user.id)
        known = await oauth.load_consented_scopes(conn, user.id, client.id)
        if known and set(given.scope.split()) <= known:
            return Asked(given, client, await _approve(call, conn, given))
    elif given.user_id != user.id:
        raise _unknown()
    return Asked(given, client)


async def settle(
    call: Call, conn: TypedConnection, user_id: UUID, authorization_id: str, is_approved: bool
) -> str:
    """The user's answer, as the address that the browser goes to."""
    given = await _lock_pending(call, conn, authorization_id)
    if given.user_id != user_id:
        raise _unknown()
    if not is_approved:
        await oauth.set_status(conn, given.id, "denied", None, None)
        members = {"error": "access_denied", "error_description": "User denied the request"}
        return answer_address(given.redirect_uri, members, given.state)
    await oauth.save_consent(
        conn, call.context.new_id(), user_id, given.client_id, given.scope, call.now
    )  # fmt: skip
    return await _approve(call, conn, given)


async def list_grants(call: Call) -> Response:
    """GET /user/oauth/grants."""
    require_enabled(call)
    async with call.context.pool.lend() as conn:
        signed = await call.require_user(conn)
        grants = await oauth.list_grants(conn, signed.user.id)
    body: list[dict[str, Any]] = [
        {
            "client": client_summary(grant.client),
            "scopes": list(grant.scopes),
            "granted_at": write_instant(grant.granted_at),
        }
        for grant in grants
    ]
    return json_response(body)


async def revoke_grant(call: Call) -> Response:
    """DELETE /user/oauth/grants?client_id=…"""
    require_enabled(call)
    client_id = parse_uuid(call.query.get("client_id", ""))
    if client_id is None:
        raise bad_request("client_id query parameter is required and must be a UUID")
    async with call.transaction() as conn:
        signed = await call.require_first_party(conn)
        if not await oauth.revoke_consent(conn, signed.user.id, client_id, call.now):
            raise not_found("oauth_consent_not_found", "No active grant found for this client")
    return empty_response()


async def _lock_pending(call: Call, conn: TypedConnection, authorization_id: str) -> Authorization:
    given = await oauth.lock_authorization(conn, authorization_id)
    if given is None:
        raise _unknown()
    if given.status == "pending" and call.now > given.expires_at:
        await oauth.set_status(conn, given.id, "expired", None, None)
        raise _unknown().keeping_writes()
    if given.status == "expired":
        raise _unknown()
    if given.status != "pending":
        raise bad_request("authorization request is not pending")
    return given


async def _approve(call: Call, conn: TypedConnection, given: Authorization) -> str:
    code = str(call.context.new_id())
    await oauth.set_status(conn, given.id, "approved", code, call.now)
    return answer_address(given.redirect_uri, {"code": code}, given.state)


def _unknown() -> AuthError:
    return not_found("oauth_authorization_not_found", "authorization not found")


def _check_origin(call: Call) -> None:
    """A script of a foreign site must not answer for the user."""
    origin = call.request.headers.get(b"origin")
    settings = call.context.settings
    if origin and not is_allowed(origin, settings.site_url, settings.additional_redirect_urls):
        raise bad_request("unauthorized request origin")
