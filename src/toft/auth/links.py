"""POST /admin/generate_link and /invite: links that an administrator makes, or has sent."""

from __future__ import annotations

from typing import Any

import msgspec

from toft.auth.addresses import normalise_email
from toft.auth.call import Call, naming
from toft.auth.errors import AuthError, bad_request, not_found, unprocessable
from toft.auth.mailer import (
    CONFIRMATION,
    EMAIL_CHANGE_CURRENT,
    EMAIL_CHANGE_NEW,
    INVITE,
    MAGIC_LINK,
    RECOVERY,
    make_link_code,
    send_letter,
    wanted_redirect,
)
from toft.auth.model import Json, User
from toft.auth.otp import find_by_email
from toft.auth.passwords import check_new_password, make_rules
from toft.auth.records import flows, users
from toft.auth.represent import json_response, user_json
from toft.auth.signup import SignUp, make_user
from toft.auth.user import EMAIL_EXISTS
from toft.http.message import Response
from toft.pg.typed import TypedConnection

_LETTERS = {
    "signup": CONFIRMATION,
    "invite": INVITE,
    "magiclink": MAGIC_LINK,
    "recovery": RECOVERY,
    "email_change_current": EMAIL_CHANGE_CURRENT,
    "email_change_new": EMAIL_CHANGE_NEW,
}


class LinkRequest(msgspec.Struct, frozen=True):
    """The body of generate_link and of an invitation."""

    type: str = ""
    email: str = ""
    new_email: str = ""
    password: str = ""
    data: Json = {}
    redirect_to: str = ""


async def generate_link(call: Call) -> Response:
    """POST /admin/generate_link: nothing is sent; code, hash and link are the answer, beside the user."""
    async with call.context.pool.lend() as conn:
        await call.require_admin(conn)
    wanted = call.read(LinkRequest)
    if wanted.type not in _LETTERS:
        raise bad_request(f"Invalid email action link type requested: {wanted.type}")
    wanted = msgspec.structs.replace(
        wanted,
        email=normalise_email(wanted.email),
        new_email=normalise_email(wanted.new_email) if wanted.type.startswith("email_change") else "",
    )
    hashed = await _hash(call, wanted) if wanted.type == "signup" else ""
    redirect_to = wanted_redirect(call, wanted.redirect_to)
    async with call.transaction() as conn:
        user, kind = await _find_or_make(call, conn, wanted, hashed)
        letter = _LETTERS[kind]
        address = wanted.new_email if kind == "email_change_new" else user.email
        code = make_link_code(call, letter, address, redirect_to)
        changes: dict[str, Any] = {letter.token_column: code.token_hash, letter.sent_column: call.now}
        if kind == "invite":
            changes["invited_at"] = call.now
        if wanted.new_email:
            await _refuse_taken(call, conn, wanted, user)
            changes |= {"email_change": wanted.new_email, "email_change_confirm_status": 0}
        with naming("Database error updating user"):
            await users.update_user(conn, user.id, call.now, changes)
            await flows.save_token(
                conn, call.context.new_id(), user.id, letter.token_type, code.token_hash, address, call.now
            )  # fmt: skip
        user = await users.load_user(conn, user.id) or user
    return json_response(
        {
            **user_json(user),
            "action_link": code.link,
            "email_otp": code.text,
            "hashed_token": code.token_hash,
            "verification_type": kind,
            "redirect_to": redirect_to,
        }
    )


async def invite(call: Call) -> Response:
    """POST /invite: a mail to somebody who is not, or not quite, there yet."""
    async with call.context.pool.lend() as conn:
        await call.require_admin(conn)
    wanted = call.read(LinkRequest)
    email = normalise_email(wanted.email)
    async with call.transaction() as conn:
        user = await find_by_email(call, conn, email)
        if user is None:
            user = await make_user(
                call, conn, SignUp(email=email, data=wanted.data), "", tells_identity=False
            )
        elif user.email_confirmed_at is not None:
            raise unprocessable("email_exists", EMAIL_EXISTS)
        await call.note_admin(conn, "user_invited", {"user_id": str(user.id), "user_email": email})
        # an invitation may be repeated at once
        await send_letter(call, conn, msgspec.structs.replace(user, confirmation_sent_at=None), INVITE)
        with naming("Database error updating user"):
            await users.update_user(conn, user.id, call.now, {"invited_at": call.now})
        user = await users.load_user(conn, user.id) or user
    return json_response(user_json(user))


async def _find_or_make(
    call: Call, conn: TypedConnection, wanted: LinkRequest, hashed: str
) -> tuple[User, str]:
    """The user whom the link is for, and its type: a magic link for somebody unknown signs up."""
    user = await find_by_email(call, conn, wanted.email)
    if wanted.type in ("signup", "invite"):
        if user is not None and user.email_confirmed_at is not None:
            raise unprocessable("email_exists", EMAIL_EXISTS)
        if user is None:
            given = SignUp(email=wanted.email, data=wanted.data)
            user = await make_user(call, conn, given, hashed, tells_identity=False)
        action = "user_invited" if wanted.type == "invite" else "user_signedup"
        await call.note_admin(conn, action, {"user_id": str(user.id), "user_email": user.email})
        return user, wanted.type
    if user is None and wanted.type == "magiclink":
        given = SignUp(email=wanted.email, data=wanted.data)
        return await make_user(call, conn, given, "", tells_identity=False), "signup"
    if user is None:
        raise not_found("user_not_found", "User with this email not found")
    await call.note_admin(conn, "user_recovery_requested", {"user_id": str(user.id)})
    return user, wanted.type


async def _hash(call: Call, wanted: LinkRequest) -> str:
    if not wanted.password:
        raise bad_request("Signup requires a valid password")
    settings = call.context.settings
    check_new_password(
        wanted.password, make_rules(settings.minimum_password_length, settings.password_requirements)
    )
    return await call.context.passwords.hash(wanted.password)


async def _refuse_taken(call: Call, conn: TypedConnection, wanted: LinkRequest, user: User) -> None:
    other = await users.load_duplicate(conn, wanted.new_email, call.audience)
    if other is not None and other.id != user.id:
        raise AuthError(422, "email_exists", EMAIL_EXISTS)
