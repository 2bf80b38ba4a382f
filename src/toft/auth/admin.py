"""Users as administrators see and change them, and the audit trail. Changes take effect without mails."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

import msgspec

from toft.auth.addresses import normalise_email, normalise_phone
from toft.auth.call import Call, naming, parse_uuid
from toft.auth.errors import AuthError, bad_request, not_found, unprocessable
from toft.auth.identities import merge_metadata, set_address_identity
from toft.auth.model import Json, User
from toft.auth.pages import page_headers, read_page
from toft.auth.passwords import LONGEST_BYTES, check_new_password, is_known_hash, make_rules
from toft.auth.records import audit, sessions, users
from toft.auth.represent import json_response, user_json, write_instant
from toft.auth.signup import confirm_new_user, identity_data
from toft.auth.soft_delete import soft_delete
from toft.auth.user import CLEARED_TOKENS, EMAIL_EXISTS, PHONE_EXISTS
from toft.http.message import Response
from toft.pg.typed import TypedConnection

_FAR_FUTURE_HOURS = 24 * 365 * 1000
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class AdminUser(msgspec.Struct, frozen=True):
    """The body of an administrator's create or update. None: not mentioned."""

    id: str = ""
    aud: str = ""
    role: str = ""
    email: str = ""
    phone: str = ""
    password: str | None = None
    password_hash: str = ""
    email_confirm: bool = False
    phone_confirm: bool = False
    user_metadata: Json | None = None
    app_metadata: Json | None = None
    ban_duration: str = ""


class Deletion(msgspec.Struct, frozen=True):
    should_soft_delete: bool = False


async def list_users(call: Call) -> Response:
    """GET /admin/users."""
    page = read_page(call.query)
    order = _read_order(call.query.get("sort", ""))
    given = call.query.get("filter", "")
    pattern = "%" + re.sub(r"([\\%_])", r"\\\1", given) + "%" if given else None
    async with call.context.pool.lend() as conn:
        await call.require_admin(conn)
        total = await users.count_users(conn, call.audience, pattern)
        found = await users.list_users(conn, call.audience, pattern, order, page.size, page.offset)
    body = {"users": [user_json(user) for user in found], "aud": call.audience}
    return json_response(body, headers=page_headers("/admin/users", call.query, page, total))


async def read_user(call: Call) -> Response:
    """GET /admin/users/{id}."""
    async with call.context.pool.lend() as conn:
        await call.require_admin(conn)
        return json_response(user_json(await load_named(call, conn)))


async def create_user(call: Call) -> Response:
    """POST /admin/users. The password's strength is the administrator's business."""
    async with call.context.pool.lend() as conn:
        await call.require_admin(conn)
    wanted = _clean(call.read(AdminUser))
    if not wanted.email and not wanted.phone:
        raise bad_request("Cannot create a user without either an email or phone")
    user_id = parse_uuid(wanted.id) if wanted.id else call.context.new_id()
    if user_id is None:
        raise bad_request("ID must conform to the uuid v4 format")
    hashed = await _hash(call, wanted)
    async with call.transaction() as conn:
        await _refuse_taken(call, conn, wanted, None)
        user = await _insert(call, conn, wanted, user_id, hashed)
        if wanted.email and wanted.email_confirm:
            await confirm_new_user(call, conn, user)
        if wanted.phone and wanted.phone_confirm:
            with naming("Database error creating new user"):
                await users.update_user(conn, user.id, call.now, {"phone_confirmed_at": call.now})
        if wanted.ban_duration:
            until = read_ban(wanted.ban_duration, call.now)
            with naming("Database error creating new user"):
                await users.update_user(conn, user.id, call.now, {"banned_until": until})
        traits = {"user_id": str(user.id), "user_email": user.email, "user_phone": user.phone}
        await call.note_admin(conn, "user_signedup", traits)
        user = await users.load_user(conn, user.id) or user
    return json_response(user_json(user))


async def update_user(call: Call) -> Response:
    """PUT /admin/users/{id}."""
    async with call.context.pool.lend() as conn:
        await call.require_admin(conn)
        user = await load_named(call, conn)
    wanted = _clean(call.read(AdminUser))
    hashed: str | None = None
    if wanted.password:
        settings = call.context.settings
        rules = make_rules(settings.minimum_password_length, settings.password_requirements)
        check_new_password(wanted.password, rules)
        hashed = await call.context.passwords.hash(wanted.password)
    elif wanted.password_hash:
        hashed = await _hash(call, wanted)
    async with call.transaction() as conn:
        user = await load_named(call, conn)
        await _refuse_taken(call, conn, wanted, user.id)
        changes = _plan_changes(call, user, wanted, hashed)
        with naming("Database error updating user"):
            if changes:
                await users.update_user(conn, user.id, call.now, changes)
            if hashed is not None:
                await sessions.delete_sessions(conn, user.id)
        if wanted.email and wanted.email != user.email:
            user = await set_address_identity(
                call, conn, user, "email", wanted.email, is_verified=wanted.email_confirm
            )
        if wanted.phone and wanted.phone != user.phone:
            user = await set_address_identity(
                call, conn, user, "phone", wanted.phone, is_verified=wanted.phone_confirm
            )
        traits = {"user_id": str(user.id), "user_email": user.email, "user_phone": user.phone}
        await call.note_admin(conn, "user_modified", traits)
        user = await users.load_user(conn, user.id) or user
    return json_response(user_json(user))


async def delete_user(call: Call) -> Response:
    """DELETE /admin/users/{id}: for good, or leaving an unrecognisable row behind."""
    wanted = call.read(Deletion)
    async with call.transaction() as conn:
        await call.require_admin(conn)
        user = await load_named(call, conn)
        traits = {"user_id": str(user.id), "user_email": user.email, "user_phone": user.phone}
        await call.note_admin(conn, "user_deleted", traits)
        with naming("Database error deleting user"):
            if wanted.should_soft_delete:
                await soft_delete(call, conn, user)
            else:
                await users.delete_user(conn, user.id)
    return json_response({})


async def list_audit(call: Call) -> Response:
    """GET /admin/audit, with `query=author:…|action:…|type:…`."""
    page = read_page(call.query)
    kind, _, text = call.query.get("query", "").partition(":")
    members = {"author": "actor_username", "action": "action", "type": "log_type"}
    if kind and kind not in members:
        raise bad_request(f"Invalid audit log query: {kind}")
    async with call.context.pool.lend() as conn:
        await call.require_admin(conn)
        total, rows = await audit.list_entries(
            conn, members.get(kind), f"%{text}%", page.size, page.offset
        )  # fmt: skip
    body = [
        {
            "id": str(row["id"]),
            "payload": msgspec.json.decode(cast("str", row["payload"] or "null")),
            "created_at": write_instant(row["created_at"]) if row["created_at"] is not None else None,
            "ip_address": row["ip_address"],
        }
        for row in rows
    ]
    return json_response(body, headers=page_headers("/admin/audit", call.query, page, total))


async def load_named(call: Call, conn: TypedConnection) -> User:
    """The user whom the path names."""
    user_id = parse_uuid(call.path["user_id"])
    if user_id is None:
        raise not_found("validation_failed", "user_id must be an UUID")
    with naming("Database error loading user"):
        user = await users.load_user(conn, user_id)
    if user is None:
        raise not_found("user_not_found", "User not found")
    return user


def read_ban(duration: str, now: datetime) -> datetime | None:
    """When a ban ends; None for `none`. The duration is written as Go does: `1h30m`."""
    if duration == "none":
        return None
    parts = _DURATION.findall(duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise bad_request(f"invalid format for ban duration: {duration}")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    return now + timedelta(seconds=min(seconds, _FAR_FUTURE_HOURS * 3600))


def _clean(wanted: AdminUser) -> AdminUser:
    return msgspec.structs.replace(
        wanted,
        email=normalise_email(wanted.email) if wanted.email else "",
        phone=normalise_phone(wanted.phone) if wanted.phone else "",
    )


async def _hash(call: Call, wanted: AdminUser) -> str:
    if wanted.password and wanted.password_hash:
        raise bad_request("Only a password or a password hash should be provided")
    if wanted.password_hash:
        if not is_known_hash(wanted.password_hash):
            raise bad_request("password_hash must be a bcrypt or argon2 hash")
        return wanted.password_hash
    if wanted.password and len(wanted.password.encode()) > LONGEST_BYTES:
        raise bad_request(f"Password cannot be longer than {LONGEST_BYTES} characters")
    # nobody knows this one: the user signs in by a link until they set their own
    password = wanted.password or call.context.entropy.bytes(24).hex()
    return await call.context.passwords.hash(password)


async def _refuse_taken(call: Call, conn: TypedConnection, wanted: AdminUser, own: UUID | None) -> None:
    with naming("Database error checking email"):
        if wanted.email:
            other = await users.load_duplicate(conn, wanted.email, wanted.aud or call.audience)
            if other is not None and other.id != own:
                raise unprocessable("email_exists", EMAIL_EXISTS)
        if wanted.phone:
            other = await users.load_by_phone(conn, wanted.phone, wanted.aud or call.audience)
            if other is not None and other.id != own:
                raise unprocessable("phone_exists", PHONE_EXISTS)


async def _insert(call: Call, conn: TypedConnection, wanted: AdminUser, user_id: UUID, hashed: str) -> User:
    providers = [name for name, given in (("email", wanted.email), ("phone", wanted.phone)) if given]
    app_metadata: Json = {"provider": providers[0], "providers": providers}
    user = User(
        id=user_id,
        aud=wanted.aud or call.audience,
        role=wanted.role or call.context.settings.default_role,
        email=wanted.email,
        phone=wanted.phone,
        encrypted_password=hashed,
        app_metadata=merge_metadata(app_metadata, wanted.app_metadata or {}),
        user_metadata=wanted.user_metadata or {},
        created_at=call.now,
        updated_at=call.now,
    )
    if await users.load_user(conn, user_id) is not None:
        raise AuthError(422, "user_already_exists", "A user with this id has already been registered")
    with naming("Database error creating new user"):
        await users.insert_user(conn, user, call.now)
        for provider in providers:
            data = identity_data(msgspec.structs.replace(user, **{_other(provider): ""}), {})
            await users.insert_identity(
                conn, call.context.new_id(), user.id, provider, str(user.id), data, call.now
            )  # fmt: skip
    return await users.load_user(conn, user.id) or user


def _other(provider: str) -> str:
    return "phone" if provider == "email" else "email"


def _plan_changes(call: Call, user: User, wanted: AdminUser, hashed: str | None) -> dict[str, Any]:
    """The columns that an administrator's update names."""
    changes: dict[str, Any] = {}
    if wanted.role:
        changes["role"] = wanted.role
    if wanted.aud:
        changes["aud"] = wanted.aud
    if wanted.email and wanted.email != user.email:
        changes |= {"email": wanted.email, "is_anonymous": False}
    if wanted.phone and wanted.phone != user.phone:
        changes |= {"phone": wanted.phone, "is_anonymous": False}
    if wanted.email_confirm and user.email_confirmed_at is None:
        changes |= {"email_confirmed_at": call.now, "confirmation_token": ""}
    if wanted.phone_confirm and user.phone_confirmed_at is None:
        changes["phone_confirmed_at"] = call.now
    if hashed is not None:
        changes |= {"encrypted_password": hashed, **CLEARED_TOKENS}
    metadata = merge_metadata(user.user_metadata, wanted.user_metadata or {})
    if wanted.email_confirm:
        metadata["email_verified"] = True
    if metadata != user.user_metadata:
        changes["raw_user_meta_data"] = metadata
    if wanted.app_metadata is not None:
        changes["raw_app_meta_data"] = merge_metadata(user.app_metadata, wanted.app_metadata)
    if wanted.ban_duration:
        changes["banned_until"] = read_ban(wanted.ban_duration, call.now)
    return changes


def _read_order(sort: str) -> tuple[str, bool]:
    column, _, direction = sort.partition(" ")
    if not column:
        return "created_at", True
    if column not in users.SORT_COLUMNS or direction.lower() not in ("", "asc", "desc"):
        raise bad_request(f"Bad sort parameter: {sort}")
    return column, direction.lower() == "desc"
