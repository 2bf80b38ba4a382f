"""Users, identities and factors: reading and writing their rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import msgspec

from toft.auth.model import NIL, Factor, Identity, Json, User
from toft.auth.records.factors import FACTOR_COLUMNS
from toft.pg.typed import Record, TypedConnection

#: seeds leave texts NULL that the service itself sets to ''
_TEXTS = (
    "aud", "role", "email", "phone", "encrypted_password", "confirmation_token", "recovery_token",
    "email_change", "email_change_token_new", "email_change_token_current", "phone_change",
    "phone_change_token", "reauthentication_token",
)  # fmt: skip
_PLAIN = (
    "id", "email_confirmed_at", "phone_confirmed_at", "confirmed_at", "invited_at", "confirmation_sent_at",
    "recovery_sent_at", "email_change_sent_at", "phone_change_sent_at", "reauthentication_sent_at",
    "last_sign_in_at", "banned_until", "deleted_at", "created_at", "updated_at", "is_sso_user",
    "is_anonymous",
)  # fmt: skip
_COLUMNS = (
    ", ".join(f"u.{name}" for name in _PLAIN)
    + ", "
    + ", ".join(f"coalesce(u.{name}, '') as {name}" for name in _TEXTS)
    + ", coalesce(u.email_change_confirm_status, 0) as email_change_confirm_status"
    ", u.raw_app_meta_data as app_metadata, u.raw_user_meta_data as user_metadata"
    # with what belongs to the user, in the same round trip
    ", (select json_agg(json_build_object('id', i.id, 'provider_id', i.provider_id, 'user_id', i.user_id,"
    " 'identity_data', case jsonb_typeof(i.identity_data) when 'object' then i.identity_data else '{}' end,"
    " 'provider', i.provider,"
    " 'last_sign_in_at', i.last_sign_in_at, 'created_at', i.created_at, 'updated_at', i.updated_at,"
    " 'email', coalesce(i.email, '')) order by i.created_at, i.id)"
    " from auth.identities i where i.user_id = u.id)::text as identities"
    f", (select json_agg(f order by f.created_at, f.id) from (select {FACTOR_COLUMNS}"
    " from auth.mfa_factors where user_id = u.id) f)::text as factors"
)
_OURS = "(u.instance_id = '00000000-0000-0000-0000-000000000000' or u.instance_id is null)"

_BY_ID = f"select {_COLUMNS} from auth.users u where u.id = $1"
_BY_EMAIL = (
    f"select {_COLUMNS} from auth.users u where {_OURS} and lower(u.email) = $1 and u.aud = $2"
    " and not u.is_sso_user order by u.created_at limit 1"
)
_BY_PHONE = (
    f"select {_COLUMNS} from auth.users u where {_OURS} and u.phone = $1 and u.aud = $2 and not u.is_sso_user"
)
_BY_EMAIL_CHANGE = (
    f"select {_COLUMNS} from auth.users u where {_OURS} and u.aud = $2 and not u.is_sso_user"
    " and (lower(u.email_change) = $1 or (lower(u.email) = $1 and u.email_change <> ''))"
    " order by u.email_change_sent_at desc nulls last limit 1"
)
_BY_PHONE_CHANGE = (
    f"select {_COLUMNS} from auth.users u where {_OURS} and u.phone_change = $1 and u.aud = $2"
    " and not u.is_sso_user order by u.phone_change_sent_at desc nulls last limit 1"
)
_BY_IDENTITY_EMAIL = (
    f"select {_COLUMNS} from auth.users u where {_OURS} and u.aud = $2 and not u.is_sso_user and u.id in"
    " (select i.user_id from auth.identities i where i.email = $1 and i.provider not like 'sso:%')"
    " order by u.created_at limit 1"
)


async def load_user(conn: TypedConnection, user_id: UUID) -> User | None:
    """A user by id, whatever the audience."""
    return _user_of(await conn.fetch_row(_BY_ID, user_id))


async def lock_user(conn: TypedConnection, user_id: UUID) -> User | None:
    """A user whom nobody else changes until we commit, as the row stands now."""
    await conn.execute("select from auth.users where id = $1 for update", user_id)
    return await load_user(conn, user_id)


async def load_by_email(conn: TypedConnection, email: str, aud: str) -> User | None:
    """The user who signs in with this address (in lower case)."""
    return _user_of(await conn.fetch_row(_BY_EMAIL, email, aud))


async def load_by_phone(conn: TypedConnection, phone: str, aud: str) -> User | None:
    """The user who signs in with this number."""
    return _user_of(await conn.fetch_row(_BY_PHONE, phone, aud))


async def load_by_email_change(conn: TypedConnection, email: str, aud: str) -> User | None:
    """Who is about to change to this address, or from it."""
    return _user_of(await conn.fetch_row(_BY_EMAIL_CHANGE, email, aud))


async def load_by_phone_change(conn: TypedConnection, phone: str, aud: str) -> User | None:
    """Who is about to change to this number."""
    return _user_of(await conn.fetch_row(_BY_PHONE_CHANGE, phone, aud))


async def load_duplicate(conn: TypedConnection, email: str, aud: str) -> User | None:
    """Whoever already has this address, as a user or through one of the identities."""
    found = await conn.fetch_row(_BY_IDENTITY_EMAIL, email, aud)
    return _make_user(found) if found is not None else await load_by_email(conn, email, aud)


async def load_by_identity(conn: TypedConnection, provider: str, subject: str) -> User | None:
    """The user whom this provider knows by this name."""
    sql = (
        f"select {_COLUMNS} from auth.users u join auth.identities i on i.user_id = u.id"
        " where i.provider = $1 and i.provider_id = $2"
    )
    return _user_of(await conn.fetch_row(sql, provider, subject))


async def load_sharers(conn: TypedConnection, email: str, aud: str) -> list[User]:
    """Everybody with this address, as a user or through an identity; logins of organisations stay apart."""
    sql = (
        f"select {_COLUMNS} from auth.users u where {_OURS} and u.aud = $2 and not u.is_sso_user"
        " and (lower(u.email) = $1 or u.id in (select i.user_id from auth.identities i"
        " where i.email = $1 and i.provider not like 'sso:%')) order by u.created_at"
    )
    return [_make_user(row) for row in await conn.fetch(sql, email, aud)]


async def count_users(conn: TypedConnection, aud: str, pattern: str | None) -> int:
    """How many users of the audience match."""
    sql = (
        f"select count(*) from auth.users u where {_OURS} and u.aud = $1 and ($2::text is null or {_MATCHES})"
    )
    return cast("int", await conn.fetch_value(sql, aud, pattern))


_MATCHES = "(u.email ilike $2 or u.raw_user_meta_data ->> 'full_name' ilike $2)"
#: what a page of users may be sorted by
SORT_COLUMNS = frozenset({"created_at", "updated_at", "email", "phone", "last_sign_in_at", "id"})


async def list_users(
    conn: TypedConnection, aud: str, pattern: str | None, order: tuple[str, bool], limit: int, offset: int
) -> list[User]:
    """A page of users with their identities and factors. `order`: column and whether it descends."""
    column, descends = order
    if column not in SORT_COLUMNS:
        raise ValueError(column)
    sql = (
        f"select {_COLUMNS} from auth.users u where {_OURS} and u.aud = $1"
        f" and ($2::text is null or {_MATCHES})"
        f" order by u.{column} {'desc' if descends else 'asc'}, u.id limit $3 offset $4"
    )
    rows = await conn.fetch(sql, aud, pattern, limit, offset)
    return [_make_user(row) for row in rows]


async def insert_user(conn: TypedConnection, user: User, now: datetime) -> None:
    """The first row of a new user: with the data that triggers on it want to see, still unconfirmed."""
    await conn.execute(
        "insert into auth.users (instance_id, id, aud, role, email, phone, encrypted_password,"
        " raw_app_meta_data, raw_user_meta_data, invited_at, is_sso_user, is_anonymous, confirmation_token,"
        " recovery_token, email_change_token_new, email_change, created_at, updated_at)"
        " values ($1, $2, $3, $4, nullif($5, ''), nullif($6, ''), $7, $8, $9, $10, $11, $12, '', '', '', '',"
        " $13, $13)",
        NIL, user.id, user.aud, user.role, user.email, user.phone, user.encrypted_password,
        _encode(user.app_metadata), _encode(user.user_metadata), user.invited_at, user.is_sso_user,
        user.is_anonymous, now,
    )  # fmt: skip


#: columns that `update_user` may set, and what is stored for a value
_UPDATABLE = {
    "aud": "{}", "role": "{}", "email": "nullif({}, '')", "phone": "nullif({}, '')",
    "encrypted_password": "{}", "email_confirmed_at": "{}", "phone_confirmed_at": "{}", "invited_at": "{}",
    "confirmation_token": "{}", "confirmation_sent_at": "{}", "recovery_token": "{}",
    "recovery_sent_at": "{}", "email_change": "{}", "email_change_token_new": "{}",
    "email_change_token_current": "{}", "email_change_confirm_status": "{}", "email_change_sent_at": "{}",
    "phone_change": "{}", "phone_change_token": "{}", "phone_change_sent_at": "{}",
    "reauthentication_token": "{}", "reauthentication_sent_at": "{}", "last_sign_in_at": "{}",
    "raw_app_meta_data": "{}", "raw_user_meta_data": "{}", "banned_until": "{}", "deleted_at": "{}",
    "is_anonymous": "{}",
}  # fmt: skip


async def update_user(
    conn: TypedConnection, user_id: UUID, now: datetime, changes: Mapping[str, object]
) -> None:
    """Set the given columns and no others, for users' triggers look at what an update names."""
    values: list[object] = [user_id, now]
    parts = ["updated_at = $2"]
    for name, value in changes.items():
        values.append(_encode(value) if name.startswith("raw_") else value)
        parts.append(f"{name} = {_UPDATABLE[name].format(f'${len(values)}')}")
    await conn.execute(f"update auth.users set {', '.join(parts)} where id = $1", *values)


async def delete_user(conn: TypedConnection, user_id: UUID) -> None:
    """Remove the row; what refers to it goes by its foreign keys."""
    await conn.execute("delete from auth.users where id = $1", user_id)


async def insert_identity(
    conn: TypedConnection,
    identity_id: UUID,
    user_id: UUID,
    provider: str,
    provider_id: str,
    data: Json,
    now: datetime,
) -> None:
    """Another way to recognise a user."""
    await conn.execute(
        "insert into auth.identities (id, user_id, provider, provider_id, identity_data, last_sign_in_at,"
        " created_at, updated_at) values ($1, $2, $3, $4, $5, $6, $6, $6)",
        identity_id, user_id, provider, provider_id, _encode(data), now,
    )  # fmt: skip


async def update_identity_data(
    conn: TypedConnection, identity: Identity, now: datetime, changes: Mapping[str, object]
) -> None:
    """Merge into what is known of an identity."""
    await conn.execute(
        "update auth.identities set identity_data = identity_data || $2::jsonb, updated_at = $3"
        " where id = $1",
        identity.id, _encode(changes), now,
    )  # fmt: skip


async def touch_identity(conn: TypedConnection, identity_id: UUID, now: datetime) -> None:
    """It was just used to sign in."""
    await conn.execute(
        "update auth.identities set last_sign_in_at = $2, updated_at = $2 where id = $1", identity_id, now
    )


async def obscure_identity(conn: TypedConnection, identity_id: UUID, provider_id: str, now: datetime) -> None:
    """Keep the row of a deleted user's identity without what it said."""
    await conn.execute(
        "update auth.identities set provider_id = $2, identity_data = '{}', updated_at = $3 where id = $1",
        identity_id, provider_id, now,
    )  # fmt: skip


async def delete_identity(conn: TypedConnection, identity_id: UUID) -> None:
    """One way less."""
    await conn.execute("delete from auth.identities where id = $1", identity_id)


async def delete_factors(conn: TypedConnection, user_id: UUID) -> None:
    """All second factors of a user."""
    await conn.execute("delete from auth.mfa_factors where user_id = $1", user_id)


def _user_of(row: Record | None) -> User | None:
    return _make_user(row) if row is not None else None


def _make_user(row: Record) -> User:
    fields: dict[str, Any] = dict(row)
    fields["app_metadata"] = _decode(row["app_metadata"])
    fields["user_metadata"] = _decode(row["user_metadata"])
    fields["identities"] = _decode_identities(row["identities"]) if row["identities"] else []
    fields["factors"] = _decode_factors(row["factors"]) if row["factors"] else []
    return User(**fields)


_decode_identities = msgspec.json.Decoder(list[Identity]).decode
_decode_factors = msgspec.json.Decoder(list[Factor]).decode


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _decode(text: str | None) -> Json:
    value = msgspec.json.decode(text) if text else None
    return cast("Json", value) if isinstance(value, dict) else {}
