"""Sessions, their methods and their refresh tokens: reading and writing the rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from toft.auth.model import NIL, Method, RefreshToken, Session
from toft.pg.typed import Record, TypedConnection

_COLUMNS = (
    "s.id, s.user_id, coalesce(s.created_at, 'epoch') as created_at, coalesce(s.aal::text, 'aal1') as aal,"
    " s.factor_id, s.not_after, s.refreshed_at at time zone 'utc' as refreshed_at, s.oauth_client_id,"
    " coalesce(s.scopes, '') as scopes, coalesce(s.tag, '') as tag,"
    " (select json_agg(json_build_object('method', m.authentication_method, 'at', m.updated_at)"
    " order by m.updated_at desc, m.created_at desc) from auth.mfa_amr_claims m"
    " where m.session_id = s.id)::text as amr"
)
_decode_methods = msgspec.json.Decoder(list[Method]).decode
_REFRESH_COLUMNS = (
    "id, token, session_id, updated_at, coalesce(parent, '') as parent,"
    " coalesce(revoked, false) as is_revoked"
)


async def insert_session(
    conn: TypedConnection,
    session: Session,
    claim_id: UUID,
    refresh_token: str,
    user_agent: str,
    ip: str | None,
) -> None:
    """A new session, at its first assurance level, with how it began and its first refresh token."""
    [begun] = session.amr
    await conn.execute(
        "with session as (insert into auth.sessions (id, user_id, created_at, updated_at, aal, factor_id,"
        " user_agent, ip, oauth_client_id, scopes, not_after)"
        " values ($1, $2, $3, $3, $4::text::auth.aal_level, $5, $6, $7::text::inet, $8, nullif($9, ''),"
        " $10)), method as (insert into auth.mfa_amr_claims"
        " (id, session_id, authentication_method, created_at,"
        " updated_at) values ($11, $1, $12, $3, $3))"
        " insert into auth.refresh_tokens (instance_id, token, user_id, revoked, created_at, updated_at,"
        " parent, session_id) values ($13, $14, $15, false, $3, $3, null, $1)",
        session.id, session.user_id, session.created_at, session.aal, session.factor_id, user_agent, ip,
        session.oauth_client_id, session.scopes, session.not_after, claim_id, begun.method, NIL,
        refresh_token, str(session.user_id),
    )  # fmt: skip


async def load_session(conn: TypedConnection, session_id: UUID, *, locks: bool = False) -> Session | None:
    """A session with its methods, newest first. `locks`: nobody else refreshes it until we commit."""
    sql = f"select {_COLUMNS} from auth.sessions s where s.id = $1"
    row = await conn.fetch_row(sql + " for update" if locks else sql, session_id)
    if row is None:
        return None
    fields: dict[str, Any] = dict(row)
    fields["amr"] = _decode_methods(row["amr"]) if row["amr"] else []
    return Session(**fields)


async def note_method(
    conn: TypedConnection, claim_id: UUID, session_id: UUID, method: str, now: datetime
) -> None:
    """The session's owner has just proved themselves this way."""
    await conn.execute(
        "insert into auth.mfa_amr_claims (id, session_id, authentication_method, created_at, updated_at)"
        " values ($1, $2, $3, $4, $4)"
        " on conflict on constraint mfa_amr_claims_session_id_authentication_method_pkey"
        " do update set updated_at = excluded.updated_at",
        claim_id, session_id, method, now,
    )  # fmt: skip


async def note_refresh(
    conn: TypedConnection, session_id: UUID, now: datetime, user_agent: str, ip: str | None
) -> None:
    """The session was refreshed; the column has no time zone and holds UTC."""
    await conn.execute(
        "update auth.sessions set refreshed_at = $2, updated_at = $3, user_agent = $4, ip = $5::text::inet"
        " where id = $1",
        session_id, now.astimezone(UTC).replace(tzinfo=None), now, user_agent, ip,
    )  # fmt: skip


async def delete_session(conn: TypedConnection, session_id: UUID) -> None:
    """End one session; its tokens and methods go with it."""
    await conn.execute("delete from auth.sessions where id = $1", session_id)


async def delete_sessions(conn: TypedConnection, user_id: UUID, keep: UUID | None = None) -> None:
    """End all sessions of a user, or all but one."""
    await conn.execute(
        "delete from auth.sessions where user_id = $1 and ($2::uuid is null or id <> $2)", user_id, keep
    )


async def insert_token(
    conn: TypedConnection, token: str, user_id: UUID, session_id: UUID, parent: str | None, now: datetime
) -> None:
    """A fresh refresh token of the family."""
    await conn.execute(
        "insert into auth.refresh_tokens (instance_id, token, user_id, revoked, created_at, updated_at,"
        " parent, session_id) values ($1, $2, $3, false, $4, $4, $5, $6)",
        NIL, token, str(user_id), now, parent, session_id,
    )  # fmt: skip


async def load_token(conn: TypedConnection, token: str) -> RefreshToken | None:
    """A refresh token by its text."""
    return _make_token(
        await conn.fetch_row(f"select {_REFRESH_COLUMNS} from auth.refresh_tokens where token = $1", token)
    )


async def load_token_and_active(
    conn: TypedConnection, token: str, session_id: UUID
) -> tuple[RefreshToken | None, RefreshToken | None]:
    """A refresh token by its text, and the newest one of the session that is not revoked."""
    sql = (
        f"(select {_REFRESH_COLUMNS} from auth.refresh_tokens where token = $1)"
        f" union all (select {_REFRESH_COLUMNS} from auth.refresh_tokens where session_id = $2"
        " and revoked is not true order by id desc limit 1)"
    )
    found = [_make_token(row) for row in await conn.fetch(sql, token, session_id)]
    shown = next((one for one in found if one is not None and one.token == token), None)
    return shown, next((one for one in reversed(found) if one is not None and not one.is_revoked), None)


async def swap_token(
    conn: TypedConnection, shown: RefreshToken, child: str, user_id: UUID, session_id: UUID, now: datetime
) -> None:
    """Revoke a token and put its child in its place."""
    await conn.execute(
        "with swapped as (update auth.refresh_tokens set revoked = true, updated_at = $4 where id = $6)"
        " insert into auth.refresh_tokens (instance_id, token, user_id, revoked, created_at, updated_at,"
        " parent, session_id) values ($1, $2, $3, false, $4, $4, $5, $7)",
        NIL, child, str(user_id), now, shown.token, shown.id, session_id,
    )  # fmt: skip


async def load_active_token(conn: TypedConnection, session_id: UUID) -> RefreshToken | None:
    """The newest token of the session that is not revoked."""
    sql = (
        f"select {_REFRESH_COLUMNS} from auth.refresh_tokens where session_id = $1"
        " and revoked is not true order by id desc limit 1"
    )
    return _make_token(await conn.fetch_row(sql, session_id))


async def revoke_token(conn: TypedConnection, token_id: int, now: datetime) -> None:
    """It has been swapped for its child."""
    await conn.execute(
        "update auth.refresh_tokens set revoked = true, updated_at = $2 where id = $1", token_id, now
    )


async def revoke_family(conn: TypedConnection, session_id: UUID, now: datetime) -> None:
    """Nobody refreshes this session any more."""
    await conn.execute(
        "update auth.refresh_tokens set revoked = true, updated_at = $2"
        " where session_id = $1 and revoked is not true",
        session_id, now,
    )  # fmt: skip


async def delete_token(conn: TypedConnection, token_id: int) -> None:
    """A token whose session is gone."""
    await conn.execute("delete from auth.refresh_tokens where id = $1", token_id)


def _make_token(row: Record | None) -> RefreshToken | None:
    return RefreshToken(**dict(row)) if row is not None else None
