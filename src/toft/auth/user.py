"""GET and PUT /user, GET /reauthenticate: what signed-in users know and change of themselves."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from toft.auth.addresses import normalise_email, normalise_phone
from toft.auth.call import Call, Signed, naming
from toft.auth.codes import Challenge, hash_code, is_same_hash, parse_challenge
from toft.auth.errors import AuthError, bad_request, forbidden, unprocessable
from toft.auth.identities import merge_metadata, set_address_identity
from toft.auth.mailer import send_email_change, send_reauthentication, send_text_code
from toft.auth.model import Json, User
from toft.auth.notices import tell_user
from toft.auth.passwords import check_new_password, make_rules
from toft.auth.records import flows, sessions, users
from toft.auth.represent import json_response, user_json
from toft.http.message import Response
from toft.pg.typed import TypedConnection

#: with secure password changes, an older session has to prove itself again
_FRESH_SESSION = timedelta(hours=24)

#: columns that every change of a password clears
CLEARED_TOKENS: dict[str, object] = {
    "confirmation_token": "",
    "recovery_token": "",
    "email_change_token_new": "",
    "email_change_token_current": "",
    "phone_change_token": "",
    "reauthentication_token": "",
}


class UserChange(msgspec.Struct, frozen=True):
    """The body of PUT /user. None: not mentioned."""

    email: str = ""
    phone: str = ""
    password: str | None = None
    current_password: str | None = None
    nonce: str = ""
    data: Json | None = None
    app_metadata: Json | None = None
    channel: str = ""
    code_challenge: str = ""
    code_challenge_method: str = ""


async def read_user(call: Call) -> Response:
    """GET /user."""
    async with call.context.pool.lend() as conn:
        signed = await call.require_user(conn)
    if call.caller.claims.get("aud") not in (None, "", call.audience):
        raise bad_request("Token audience doesn't match request audience")
    return json_response(user_json(signed.user))


async def update_user(call: Call) -> Response:
    """PUT /user."""
    wanted = call.read(UserChange)
    challenge = parse_challenge(wanted.code_challenge, wanted.code_challenge_method)
    async with call.context.pool.lend() as conn:
        signed = await call.require_first_party(conn)
        wanted = await _check(call, conn, signed, wanted)
    hashed = await _check_password(call, signed, wanted)
    async with call.transaction() as conn:
        signed = await call.require_user(conn)
        user = signed.user
        if hashed is not None:
            await _set_password(call, conn, signed, hashed)
        if wanted.data is not None:
            metadata = merge_metadata(user.user_metadata, wanted.data)
            with naming("Database error updating user"):
                await users.update_user(conn, user.id, call.now, {"raw_user_meta_data": metadata})
        if wanted.email and wanted.email != user.email:
            await _change_email(call, conn, user, wanted.email, challenge)
        if wanted.phone and wanted.phone != user.phone:
            await _change_phone(call, conn, user, wanted)
        await call.note(conn, user, "user_modified")
        user = await users.load_user(conn, user.id) or user
    return json_response(user_json(user))


async def reauthenticate(call: Call) -> Response:
    """GET /reauthenticate: a code to the address or number that is known."""
    async with call.transaction() as conn:
        user = (await call.require_first_party(conn)).user
        if not user.email and not user.phone:
            raise bad_request("Reauthentication requires the user to have an email or a phone number")
        if user.email and user.email_confirmed_at is None:
            raise unprocessable("email_not_confirmed", "Please verify your email first.")
        if not user.email and user.phone_confirmed_at is None:
            raise unprocessable("phone_not_confirmed", "Please verify your phone first.")
        await call.note(conn, user, "user_reauthenticate_requested")
        await send_reauthentication(call, conn, user)
    return json_response({})


async def _check(call: Call, conn: TypedConnection, signed: Signed, wanted: UserChange) -> UserChange:
    """Everything that needs no hashing, in upstream's order. Gives the change with clean addresses."""
    user = signed.user
    email = normalise_email(wanted.email) if wanted.email else ""
    phone = normalise_phone(wanted.phone) if wanted.phone else ""
    if wanted.app_metadata is not None and not call.is_admin():
        raise forbidden("not_admin", "Updating app_metadata requires admin privileges")
    if user.is_anonymous and wanted.password and not (user.email or user.phone or email or phone):
        raise unprocessable(
            "validation_failed",
            "Updating password of an anonymous user without an email or phone is not allowed",
        )
    changes_account = (email and email != user.email) or (phone and phone != user.phone) or wanted.password
    if user.is_sso_user and (changes_account or wanted.nonce):
        raise unprocessable(
            "user_sso_managed", "Updating email, phone, password of a SSO account only possible via SSO"
        )
    is_second = signed.session is not None and signed.session.aal != "aal1"
    if changes_account and user.verified_factors and not is_second:
        raise AuthError(
            401,
            "insufficient_aal",
            "AAL2 session is required to update email or password when MFA is enabled.",
        )
    with naming("Database error checking email"):
        if email and email != user.email:
            other = await users.load_duplicate(conn, email, call.audience)
            if other is not None and other.id != user.id:
                raise unprocessable("email_exists", EMAIL_EXISTS)
        if (
            phone
            and phone != user.phone
            and await users.load_by_phone(conn, phone, call.audience) is not None
        ):
            raise unprocessable("phone_exists", PHONE_EXISTS)
    return msgspec.structs.replace(wanted, email=email, phone=phone)


EMAIL_EXISTS = "A user with this email address has already been registered"
PHONE_EXISTS = "A user with this phone number has already been registered"


async def _check_password(call: Call, signed: Signed, wanted: UserChange) -> str | None:
    """The new password's hash, "" to remove it, None for no change."""
    if wanted.password is None:
        return None
    if not wanted.password:
        return ""
    settings = call.context.settings
    user, session = signed.user, signed.session
    check_new_password(
        wanted.password, make_rules(settings.minimum_password_length, settings.password_requirements)
    )
    passwords = call.context.passwords
    shown = wanted.current_password
    if (
        shown is not None
        and user.encrypted_password
        and not await passwords.matches(shown, user.encrypted_password)
    ):
        raise bad_request("Current password is wrong", "current_password_invalid")
    if user.encrypted_password and await passwords.matches(wanted.password, user.encrypted_password):
        raise unprocessable("same_password", "New password should be different from the old password.")
    is_old = session is not None and call.now > session.created_at + _FRESH_SESSION
    if settings.email_secure_password_change and is_old:
        _check_nonce(call, user, wanted.nonce)
    return await passwords.hash(wanted.password)


def _check_nonce(call: Call, user: User, nonce: str) -> None:
    if not nonce:
        raise bad_request("Password update requires reauthentication", "reauthentication_needed")
    address = user.email or user.phone
    sent_at: datetime | None = user.reauthentication_sent_at
    lifetime = timedelta(seconds=call.context.settings.email_otp_expiry_seconds)
    is_in_time = sent_at is not None and call.now <= sent_at + lifetime
    if not is_in_time or not is_same_hash(user.reauthentication_token, hash_code(address, nonce)):
        raise unprocessable("reauthentication_not_valid", "Nonce has expired or is invalid")


async def _set_password(call: Call, conn: TypedConnection, signed: Signed, hashed: str) -> None:
    """The new password; nothing that was sent before works any more, and other sessions end."""
    user, session = signed.user, signed.session
    with naming("Database error updating user"):
        await users.update_user(conn, user.id, call.now, {"encrypted_password": hashed, **CLEARED_TOKENS})
        await flows.delete_tokens(conn, user.id)
        await sessions.delete_sessions(conn, user.id, keep=session.id if session is not None else None)
    await call.note(conn, user, "user_updated_password")
    tell_user(call, user, "password_changed")


async def _change_email(
    call: Call, conn: TypedConnection, user: User, email: str, challenge: Challenge | None
) -> None:
    if not (user.is_anonymous and call.context.autoconfirms_email):
        await send_email_change(call, conn, user, email, challenge)
        return
    changes: dict[str, Any] = {"email": email, "email_confirmed_at": call.now, "is_anonymous": False}
    with naming("Database error updating user"):
        await users.update_user(conn, user.id, call.now, changes)
    await set_address_identity(call, conn, user, "email", email, is_verified=True)


async def _change_phone(call: Call, conn: TypedConnection, user: User, wanted: UserChange) -> None:
    if call.context.settings.sms_enable_confirmations:
        with naming("Database error updating user"):
            await users.update_user(conn, user.id, call.now, {"phone_change": wanted.phone})
        await send_text_code(call, conn, user, "phone_change", wanted.phone, wanted.channel)
        return
    changes: dict[str, Any] = {"phone": wanted.phone, "phone_confirmed_at": call.now, "is_anonymous": False}
    with naming("Database error updating user"):
        await users.update_user(conn, user.id, call.now, changes)
    changed = await set_address_identity(call, conn, user, "phone", wanted.phone, is_verified=True)
    tell_user(call, changed, "phone_changed", OldPhone=user.phone)
