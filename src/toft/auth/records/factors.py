"""Second factors and their challenges: reading and writing the rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from toft.auth.model import Factor
from toft.pg.typed import TypedConnection

FACTOR_COLUMNS = (
    "id, user_id, coalesce(friendly_name, '') as friendly_name, factor_type::text, status::text,"
    " created_at, updated_at, coalesce(secret, '') as secret, coalesce(phone, '') as phone,"
    " last_challenged_at"
)


class Challenge(msgspec.Struct, frozen=True):
    """A question to the holder of a factor."""

    id: UUID
    factor_id: UUID
    created_at: datetime
    verified_at: datetime | None
    ip_address: str
    otp_code: str


async def insert_factor(conn: TypedConnection, factor: Factor) -> None:
    """A factor that has not proved itself yet."""
    await conn.execute(
        "insert into auth.mfa_factors (id, user_id, friendly_name, factor_type, status, created_at,"
        " updated_at, secret, phone) values ($1, $2, nullif($3, ''), $4::text::auth.factor_type,"
        " $5::text::auth.factor_status, $6, $6, nullif($7, ''), nullif($8, ''))",
        factor.id, factor.user_id, factor.friendly_name, factor.factor_type, factor.status,
        factor.created_at, factor.secret, factor.phone,
    )  # fmt: skip


async def load_factor(conn: TypedConnection, user_id: UUID, factor_id: UUID) -> Factor | None:
    """A factor of this user."""
    sql = f"select {FACTOR_COLUMNS} from auth.mfa_factors where id = $1 and user_id = $2"
    row = await conn.fetch_row(sql, factor_id, user_id)
    if row is None:
        return None
    fields: dict[str, Any] = dict(row)
    return Factor(**fields)


async def set_verified(conn: TypedConnection, factor_id: UUID, now: datetime) -> None:
    """It has proved itself."""
    await conn.execute(
        "update auth.mfa_factors set status = 'verified', updated_at = $2 where id = $1", factor_id, now
    )


async def rename_factor(
    conn: TypedConnection, factor_id: UUID, name: str, phone: str | None, now: datetime
) -> None:
    """Another name, and another number where one is given."""
    await conn.execute(
        "update auth.mfa_factors set friendly_name = nullif($2, ''), phone = coalesce($3, phone),"
        " updated_at = $4 where id = $1",
        factor_id, name, phone, now,
    )  # fmt: skip


async def delete_factor(conn: TypedConnection, factor_id: UUID) -> None:
    """Take it away."""
    await conn.execute("delete from auth.mfa_factors where id = $1", factor_id)


async def delete_unverified(
    conn: TypedConnection, user_id: UUID, factor_type: str | None, before: datetime | None
) -> None:
    """Forget factors that never proved themselves: of one type, or those that nobody asked since a moment."""
    await conn.execute(
        "delete from auth.mfa_factors where user_id = $1 and status = 'unverified'"
        " and ($2::text is null or factor_type::text = $2)"
        " and ($3::timestamptz is null or (created_at < $3 and not exists ("
        "select from auth.mfa_challenges c where c.factor_id = mfa_factors.id and c.created_at >= $3)))",
        user_id, factor_type, before,
    )  # fmt: skip


async def insert_challenge(conn: TypedConnection, challenge: Challenge) -> None:
    """Ask, and remember that it was asked."""
    await conn.execute(
        "insert into auth.mfa_challenges (id, factor_id, created_at, ip_address, otp_code)"
        " values ($1, $2, $3, $4::text::inet, nullif($5, ''))",
        challenge.id, challenge.factor_id, challenge.created_at, challenge.ip_address, challenge.otp_code,
    )  # fmt: skip
    await conn.execute(
        "update auth.mfa_factors set last_challenged_at = $2 where id = $1",
        challenge.factor_id, challenge.created_at,
    )  # fmt: skip


async def load_challenge(conn: TypedConnection, factor_id: UUID, challenge_id: UUID) -> Challenge | None:
    """A question to this factor; locked, so that it is answered once."""
    row = await conn.fetch_row(
        "select id, factor_id, created_at, verified_at, host(ip_address) as ip_address,"
        " coalesce(otp_code, '') as otp_code from auth.mfa_challenges where id = $1 and factor_id = $2"
        " for update",
        challenge_id, factor_id,
    )  # fmt: skip
    if row is None:
        return None
    fields: dict[str, Any] = dict(row)
    return Challenge(**fields)


async def set_answered(conn: TypedConnection, challenge_id: UUID, now: datetime) -> None:
    """It was answered and is of no more use."""
    await conn.execute("update auth.mfa_challenges set verified_at = $2 where id = $1", challenge_id, now)


async def delete_challenge(conn: TypedConnection, challenge_id: UUID) -> None:
    """It has run out."""
    await conn.execute("delete from auth.mfa_challenges where id = $1", challenge_id)


async def raise_session(conn: TypedConnection, session_id: UUID, factor_id: UUID, now: datetime) -> None:
    """The session's owner has shown a second factor."""
    await conn.execute(
        "update auth.sessions set aal = 'aal2', factor_id = $2, updated_at = $3 where id = $1",
        session_id, factor_id, now,
    )  # fmt: skip


async def delete_weaker_sessions(conn: TypedConnection, user_id: UUID) -> None:
    """Sessions that never showed a second factor end when another one has."""
    await conn.execute(
        "delete from auth.sessions where user_id = $1 and (aal is null or aal < 'aal2')", user_id
    )


async def lower_sessions(conn: TypedConnection, factor_id: UUID, method: str, now: datetime) -> None:
    """Sessions that owe their level to a factor lose it with the factor."""
    await conn.execute(
        "delete from auth.mfa_amr_claims where authentication_method = $2"
        " and session_id in (select id from auth.sessions where factor_id = $1)",
        factor_id, method,
    )  # fmt: skip
    await conn.execute(
        "update auth.sessions set aal = 'aal1', factor_id = null, updated_at = $2 where factor_id = $1",
        factor_id, now,
    )  # fmt: skip
