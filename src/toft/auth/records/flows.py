"""One-time tokens and PKCE flows: reading and writing the rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from toft.auth.model import Flow
from toft.pg.typed import Record, TypedConnection

_FLOW_COLUMNS = (
    "id, user_id, coalesce(auth_code, '') as auth_code,"
    " coalesce(code_challenge_method::text, '') as challenge_method,"
    " coalesce(code_challenge, '') as challenge, provider_type,"
    " coalesce(provider_access_token, '') as provider_access_token,"
    " coalesce(provider_refresh_token, '') as provider_refresh_token, authentication_method,"
    " coalesce(created_at, 'epoch') as created_at, auth_code_issued_at as code_issued_at,"
    " coalesce(referrer, '') as referrer, linking_target_id"
)


async def save_token(
    conn: TypedConnection,
    token_id: UUID,
    user_id: UUID,
    kind: str,
    token_hash: str,
    relates_to: str,
    now: datetime,
) -> None:
    """The one token of this kind that the user has; an older one stops working."""
    at = now.astimezone(UTC).replace(tzinfo=None)
    await conn.execute(
        "insert into auth.one_time_tokens (id, user_id, token_type, token_hash, relates_to, created_at,"
        " updated_at) values ($1, $2, $3::text::auth.one_time_token_type, $4, lower($5), $6, $6)"
        " on conflict (user_id, token_type) do update set token_hash = excluded.token_hash,"
        " relates_to = excluded.relates_to, created_at = excluded.created_at,"
        " updated_at = excluded.updated_at",
        token_id, user_id, kind, token_hash, relates_to, at,
    )  # fmt: skip


async def find_token_owner(
    conn: TypedConnection, kinds: list[str], hashes: list[str]
) -> tuple[UUID, str, str] | None:
    """Whose token this is, of which kind, and the hash as stored."""
    row = await conn.fetch_row(
        "select user_id, token_type::text, token_hash from auth.one_time_tokens"
        " where token_hash = any($2) and token_type::text = any($1) limit 1",
        kinds, hashes,
    )  # fmt: skip
    return (row["user_id"], row["token_type"], row["token_hash"]) if row is not None else None


async def delete_token(conn: TypedConnection, user_id: UUID, kind: str) -> None:
    """Forget one kind of token of a user."""
    await conn.execute(
        "delete from auth.one_time_tokens where user_id = $1 and token_type::text = $2", user_id, kind
    )


async def delete_tokens(conn: TypedConnection, user_id: UUID) -> None:
    """Forget all that were sent to a user."""
    await conn.execute("delete from auth.one_time_tokens where user_id = $1", user_id)


async def insert_flow(conn: TypedConnection, flow: Flow) -> None:
    """A flow begins."""
    await conn.execute(
        "insert into auth.flow_state (id, user_id, auth_code, code_challenge_method, code_challenge,"
        " provider_type, provider_access_token, provider_refresh_token, authentication_method, created_at,"
        " updated_at, referrer, linking_target_id) values ($1, $2, $3,"
        " nullif($4::text, '')::auth.code_challenge_method, nullif($5, ''), $6, '', '', $7, $8, $8,"
        " nullif($9, ''), $10)",
        flow.id, flow.user_id, flow.auth_code, flow.challenge_method, flow.challenge, flow.provider_type,
        flow.authentication_method, flow.created_at, flow.referrer, flow.linking_target_id,
    )  # fmt: skip


async def load_flow_by_code(conn: TypedConnection, auth_code: str) -> Flow | None:
    """The flow that ends with this code; locked, so that it ends once."""
    sql = f"select {_FLOW_COLUMNS} from auth.flow_state where auth_code = $1 for update"
    return _make_flow(await conn.fetch_row(sql, auth_code))


async def load_newest_flow(conn: TypedConnection, user_id: UUID, method: str) -> Flow | None:
    """The flow that a link of this user belongs to."""
    sql = (
        f"select {_FLOW_COLUMNS} from auth.flow_state where user_id = $1 and authentication_method = $2"
        " order by created_at desc limit 1"
    )
    return _make_flow(await conn.fetch_row(sql, user_id, method))


async def load_flow(conn: TypedConnection, flow_id: UUID, *, locks: bool = False) -> Flow | None:
    """A flow by its id, which is the `state` of a social login."""
    sql = f"select {_FLOW_COLUMNS} from auth.flow_state where id = $1"
    return _make_flow(await conn.fetch_row(sql + (" for update" if locks else ""), flow_id))


async def note_signed_in(
    conn: TypedConnection,
    flow_id: UUID,
    user_id: UUID,
    access_token: str,
    refresh_token: str,
    now: datetime,
) -> None:
    """Somebody came back from the provider: the flow's code may be exchanged now."""
    await conn.execute(
        "update auth.flow_state set user_id = $2, provider_access_token = $3, provider_refresh_token = $4,"
        " auth_code_issued_at = $5, updated_at = $5 where id = $1",
        flow_id, user_id, access_token, refresh_token, now,
    )  # fmt: skip


async def note_code_issued(conn: TypedConnection, flow_id: UUID, now: datetime) -> None:
    """Its link was clicked."""
    await conn.execute(
        "update auth.flow_state set auth_code_issued_at = $2, updated_at = $2 where id = $1", flow_id, now
    )


async def delete_flow(conn: TypedConnection, flow_id: UUID) -> None:
    """The flow has ended."""
    await conn.execute("delete from auth.flow_state where id = $1", flow_id)


async def delete_old_flows(conn: TypedConnection, before: datetime) -> None:
    """Forget flows that nobody can end any more."""
    await conn.execute("delete from auth.flow_state where created_at < $1", before)


def _make_flow(row: Record | None) -> Flow | None:
    if row is None:
        return None
    fields: dict[str, Any] = dict(row)
    return Flow(**fields)
