"""OAuth clients, authorizations and consents: reading and writing the rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from toft.auth.oauth_server.model import Authorization, Client, Grant
from toft.pg.typed import Record, TypedConnection

_CLIENT = (
    "c.id, coalesce(c.client_secret_hash, '') as secret_hash, c.registration_type::text, c.client_type::text,"
    " c.token_endpoint_auth_method as auth_method, c.redirect_uris, c.grant_types,"
    " coalesce(c.client_name, '') as name, coalesce(c.client_uri, '') as uri,"
    " coalesce(c.logo_uri, '') as logo_uri, c.created_at, c.updated_at"
)
_AUTHORIZATION = (
    "a.id, a.authorization_id, a.client_id, a.user_id, a.redirect_uri, a.scope,"
    " coalesce(a.state, '') as state, coalesce(a.resource, '') as resource,"
    " coalesce(a.code_challenge, '') as challenge,"
    " coalesce(a.code_challenge_method::text, '') as challenge_method, a.status::text,"
    " coalesce(a.authorization_code, '') as code, a.created_at, a.expires_at, coalesce(a.nonce, '') as nonce"
)


async def insert_client(conn: TypedConnection, client: Client) -> None:
    """A new client."""
    await conn.execute(
        "insert into auth.oauth_clients (id, client_secret_hash, registration_type, redirect_uris,"
        " grant_types, client_name, client_uri, logo_uri, created_at, updated_at, client_type,"
        " token_endpoint_auth_method)"
        " values ($1, nullif($2, ''), $3::text::auth.oauth_registration_type, $4, $5, nullif($6, ''),"
        " nullif($7, ''), nullif($8, ''), $9, $9, $10::text::auth.oauth_client_type, $11)",
        client.id, client.secret_hash, client.registration_type, ",".join(client.redirect_uris),
        ",".join(client.grant_types), client.name, client.uri, client.logo_uri, client.created_at,
        client.client_type, client.auth_method,
    )  # fmt: skip


async def load_client(conn: TypedConnection, client_id: UUID) -> Client | None:
    """A client that was not deleted."""
    sql = f"select {_CLIENT} from auth.oauth_clients c where c.id = $1 and c.deleted_at is null"
    row = await conn.fetch_row(sql, client_id)
    return _make_client(row) if row is not None else None


async def list_clients(conn: TypedConnection) -> list[Client]:
    """All clients, newest first."""
    sql = (
        f"select {_CLIENT} from auth.oauth_clients c where c.deleted_at is null"
        " order by c.created_at desc, c.id"
    )
    return [_make_client(row) for row in await conn.fetch(sql)]


async def update_client(conn: TypedConnection, client: Client, now: datetime) -> None:
    """Everything of a client that may change."""
    await conn.execute(
        "update auth.oauth_clients set client_secret_hash = nullif($2, ''), redirect_uris = $3,"
        " grant_types = $4, client_name = nullif($5, ''), client_uri = nullif($6, ''),"
        " logo_uri = nullif($7, ''),"
        " token_endpoint_auth_method = $8, updated_at = $9 where id = $1",
        client.id, client.secret_hash, ",".join(client.redirect_uris), ",".join(client.grant_types),
        client.name, client.uri, client.logo_uri, client.auth_method, now,
    )  # fmt: skip


async def delete_client(conn: TypedConnection, client_id: UUID, now: datetime) -> None:
    """The row stays, so that its sessions can still be told apart; nothing can be refreshed any more."""
    await conn.execute(
        "update auth.oauth_clients set deleted_at = $2, updated_at = $2 where id = $1", client_id, now
    )


async def insert_authorization(conn: TypedConnection, given: Authorization) -> None:
    """A request that waits for somebody's consent."""
    await conn.execute(
        "insert into auth.oauth_authorizations (id, authorization_id, client_id, redirect_uri, scope, state,"
        " resource, code_challenge, code_challenge_method, created_at, expires_at, nonce)"
        " values ($1, $2, $3, $4, $5, nullif($6, ''), nullif($7, ''), $8,"
        " $9::text::auth.code_challenge_method, $10, $11, nullif($12, ''))",
        given.id, given.authorization_id, given.client_id, given.redirect_uri, given.scope, given.state,
        given.resource, given.challenge, given.challenge_method, given.created_at, given.expires_at,
        given.nonce,
    )  # fmt: skip


async def lock_authorization(conn: TypedConnection, authorization_id: str) -> Authorization | None:
    """A request by its public name; None also while somebody else is at it."""
    sql = (
        f"select {_AUTHORIZATION} from auth.oauth_authorizations a where a.authorization_id = $1"
        " for update skip locked"
    )
    return _make_authorization(await conn.fetch_row(sql, authorization_id))


async def lock_authorization_by_code(conn: TypedConnection, code: str) -> Authorization | None:
    """A request by the code that it ended with."""
    sql = (
        f"select {_AUTHORIZATION} from auth.oauth_authorizations a where a.authorization_code = $1 for update"
    )
    return _make_authorization(await conn.fetch_row(sql, code))


async def bind_authorization(conn: TypedConnection, row_id: UUID, user_id: UUID) -> None:
    """From now on only this user may answer it."""
    await conn.execute("update auth.oauth_authorizations set user_id = $2 where id = $1", row_id, user_id)


async def set_status(
    conn: TypedConnection, row_id: UUID, status: str, code: str | None, approved_at: datetime | None
) -> None:
    """Approved with a code, denied, or expired."""
    await conn.execute(
        "update auth.oauth_authorizations set status = $2::text::auth.oauth_authorization_status,"
        " authorization_code = $3, approved_at = $4 where id = $1",
        row_id, status, code, approved_at,
    )  # fmt: skip


async def delete_authorization(conn: TypedConnection, row_id: UUID) -> None:
    """Its code was exchanged."""
    await conn.execute("delete from auth.oauth_authorizations where id = $1", row_id)


async def load_consented_scopes(conn: TypedConnection, user_id: UUID, client_id: UUID) -> set[str]:
    """What the user has agreed to and not taken back."""
    scopes: str | None = await conn.fetch_value(
        "select scopes from auth.oauth_consents where user_id = $1 and client_id = $2 and revoked_at is null",
        user_id, client_id,
    )  # fmt: skip
    return set(scopes.split()) if scopes else set()


async def save_consent(
    conn: TypedConnection, row_id: UUID, user_id: UUID, client_id: UUID, scopes: str, now: datetime
) -> None:
    """Exactly these scopes from now on."""
    await conn.execute(
        "insert into auth.oauth_consents (id, user_id, client_id, scopes, granted_at)"
        " values ($1, $2, $3, $4, $5)"
        " on conflict on constraint oauth_consents_user_client_unique do update set scopes = excluded.scopes,"
        " granted_at = excluded.granted_at, revoked_at = null",
        row_id, user_id, client_id, scopes, now,
    )  # fmt: skip


async def list_grants(conn: TypedConnection, user_id: UUID) -> list[Grant]:
    """What a user has agreed to, newest first."""
    sql = (
        f"select {_CLIENT}, o.scopes, o.granted_at from auth.oauth_consents o join auth.oauth_clients c"
        " on c.id = o.client_id where o.user_id = $1 and o.revoked_at is null and c.deleted_at is null"
        " order by o.granted_at desc"
    )
    grants: list[Grant] = []
    for row in await conn.fetch(sql, user_id):
        fields = dict(row)
        scopes: str = fields.pop("scopes")
        granted_at: datetime = fields.pop("granted_at")
        grants.append(Grant(_make_client(fields), tuple(scopes.split()), granted_at))
    return grants


async def revoke_consent(conn: TypedConnection, user_id: UUID, client_id: UUID, now: datetime) -> bool:
    """Take it back, and end the client's sessions. False when there was nothing."""
    tag = await conn.execute(
        "update auth.oauth_consents set revoked_at = greatest($3, granted_at)"
        " where user_id = $1 and client_id = $2 and revoked_at is null",
        user_id, client_id, now,
    )  # fmt: skip
    await conn.execute(
        "delete from auth.sessions where user_id = $1 and oauth_client_id = $2", user_id, client_id
    )
    return tag != "UPDATE 0"


def _make_client(row: Mapping[str, Any]) -> Client:
    fields: dict[str, Any] = dict(row)
    fields["redirect_uris"] = tuple(uri for uri in row["redirect_uris"].split(",") if uri)
    fields["grant_types"] = tuple(kind for kind in row["grant_types"].split(",") if kind)
    return Client(**fields)


def _make_authorization(row: Record | None) -> Authorization | None:
    if row is None:
        return None
    fields: dict[str, Any] = dict(row)
    return Authorization(**fields)
