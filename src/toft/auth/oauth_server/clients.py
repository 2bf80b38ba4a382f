"""Clients: registered by themselves or by an administrator, and looked after."""

from __future__ import annotations

from typing import Any

import msgspec

from toft.auth.call import Call, parse_uuid
from toft.auth.errors import AuthError, bad_request, forbidden, not_found
from toft.auth.oauth_server.model import Client
from toft.auth.oauth_server.registration import (
    GRANT_TYPES,
    Registration,
    check_redirects,
    check_registration,
    check_rest,
    client_json,
    hash_secret,
)
from toft.auth.records import oauth
from toft.auth.represent import empty_response, json_response
from toft.http.message import Response
from toft.pg.typed import TypedConnection
from toft.tokens.keys import encode_bytes


def require_enabled(call: Call) -> None:
    """Raise unless the OAuth server is switched on."""
    if not call.context.settings.oauth_server_enabled:
        raise not_found("feature_disabled", "OAuth server is disabled")


async def register(call: Call) -> Response:
    """POST /oauth/clients/register: by anybody, where that is allowed."""
    require_enabled(call)
    if not call.context.settings.oauth_server_allow_dynamic_registration:
        raise forbidden(
            "oauth_dynamic_client_registration_disabled", "Dynamic client registration is disabled"
        )
    return await _create(call, "dynamic")


async def create_client(call: Call) -> Response:
    """POST /admin/oauth/clients."""
    async with call.context.pool.lend() as conn:
        await _require_admin(call, conn)
    return await _create(call, "manual")


async def list_clients(call: Call) -> Response:
    """GET /admin/oauth/clients."""
    async with call.context.pool.lend() as conn:
        await _require_admin(call, conn)
        clients = await oauth.list_clients(conn)
    body = {"clients": [client_json(client) for client in clients], "aud": call.audience}
    return json_response(body, headers=[(b"x-total-count", str(len(clients)).encode())])


async def read_client(call: Call) -> Response:
    """GET /admin/oauth/clients/{client_id}."""
    async with call.context.pool.lend() as conn:
        await _require_admin(call, conn)
        return json_response(client_json(await _load_named(call, conn)))


async def update_client(call: Call) -> Response:
    """PUT /admin/oauth/clients/{client_id}: what is given changes."""
    given = call.read(Registration)
    async with call.transaction() as conn:
        await _require_admin(call, conn)
        client = await _load_named(call, conn)
        changes = _plan_changes(call, client, given)
        if not changes:
            raise bad_request("No fields to update")
        await oauth.update_client(conn, msgspec.structs.replace(client, **changes), call.now)
        client = await _load_named(call, conn)
    return json_response(client_json(client))


async def delete_client(call: Call) -> Response:
    """DELETE /admin/oauth/clients/{client_id}."""
    async with call.transaction() as conn:
        await _require_admin(call, conn)
        client = await _load_named(call, conn)
        await oauth.delete_client(conn, client.id, call.now)
    return empty_response()


async def regenerate_secret(call: Call) -> Response:
    """POST /admin/oauth/clients/{client_id}/regenerate_secret."""
    secret = _make_secret(call)
    async with call.transaction() as conn:
        await _require_admin(call, conn)
        client = await _load_named(call, conn)
        if client.client_type == "public":
            raise bad_request("Cannot regenerate secret for public client")
        changed = msgspec.structs.replace(client, secret_hash=hash_secret(secret))
        await oauth.update_client(conn, changed, call.now)
        client = await _load_named(call, conn)
    return json_response(client_json(client, secret))


def client_not_found() -> AuthError:
    """404."""
    return not_found("oauth_client_not_found", "OAuth client not found")


async def _create(call: Call, registration_type: str) -> Response:
    given = call.read(Registration)
    kind, method = check_registration(given)
    secret = _make_secret(call) if kind == "confidential" else None
    client = Client(
        id=call.context.new_id(),
        secret_hash=hash_secret(secret) if secret is not None else "",
        registration_type=registration_type,
        client_type=kind,
        auth_method=method,
        redirect_uris=tuple(given.redirect_uris),
        grant_types=tuple(given.grant_types) or GRANT_TYPES,
        name=given.client_name,
        uri=given.client_uri,
        logo_uri=given.logo_uri,
        created_at=call.now,
        updated_at=call.now,
    )
    async with call.transaction() as conn:
        await oauth.insert_client(conn, client)
    return json_response(client_json(client, secret), 201, [(b"cache-control", b"no-store")])


def _plan_changes(call: Call, client: Client, given: Registration) -> dict[str, Any]:
    check_rest(given)
    changes: dict[str, Any] = {}
    if "redirect_uris" in call.fields:
        check_redirects(given.redirect_uris)
        changes["redirect_uris"] = tuple(given.redirect_uris)
    if given.grant_types:
        changes["grant_types"] = tuple(given.grant_types)
    for name, member in (("name", "client_name"), ("uri", "client_uri"), ("logo_uri", "logo_uri")):
        if member in call.fields:
            changes[name] = getattr(given, member)
    method = given.token_endpoint_auth_method
    if method:
        if (client.client_type == "public") != (method == "none"):
            raise bad_request("token_endpoint_auth_method does not go with the client's type")
        changes["auth_method"] = method
    return changes


async def _require_admin(call: Call, conn: TypedConnection) -> None:
    require_enabled(call)
    await call.require_admin(conn)


async def _load_named(call: Call, conn: TypedConnection) -> Client:
    client_id = parse_uuid(call.path["client_id"])
    client = await oauth.load_client(conn, client_id) if client_id is not None else None
    if client is None:
        raise client_not_found()
    return client


def _make_secret(call: Call) -> str:
    return encode_bytes(call.context.entropy.bytes(32))
