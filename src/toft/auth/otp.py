"""Codes and links on request: POST /otp, /magiclink, /recover, /resend."""

from __future__ import annotations

import msgspec

from toft.auth.addresses import normalise_email, normalise_phone
from toft.auth.call import Call, naming
from toft.auth.codes import Challenge, parse_challenge
from toft.auth.errors import bad_request, unprocessable
from toft.auth.mailer import (
    CONFIRMATION,
    MAGIC_LINK,
    RECOVERY,
    send_email_change,
    send_letter,
    send_text_code,
)
from toft.auth.model import Json, User
from toft.auth.records import users
from toft.auth.represent import json_response
from toft.auth.signup import SignUp, confirm_new_user, make_user
from toft.http.message import Response
from toft.pg.typed import TypedConnection

_RESENT = ("signup", "email_change", "sms", "phone_change")


class CodeRequest(msgspec.Struct, frozen=True):
    """The body of /otp, /magiclink and /recover."""

    email: str = ""
    phone: str = ""
    create_user: bool = True
    data: Json = {}
    channel: str = ""
    code_challenge: str = ""
    code_challenge_method: str = ""


class ResendRequest(msgspec.Struct, frozen=True):
    """The body of /resend."""

    type: str = ""
    email: str = ""
    phone: str = ""
    code_challenge: str = ""
    code_challenge_method: str = ""


async def otp(call: Call) -> Response:
    """POST /otp: by mail or text message, as the body says."""
    wanted = call.read(CodeRequest)
    if wanted.email and wanted.phone:
        raise bad_request("Only an email address or phone number should be provided")
    if not wanted.email and not wanted.phone:
        raise bad_request("One of email or phone must be set")
    return await (_by_mail(call, wanted) if wanted.email else _by_text(call, wanted))


async def magiclink(call: Call) -> Response:
    """POST /magiclink: by mail, signing up whoever is unknown."""
    return await _by_mail(call, call.read(CodeRequest))


async def recover(call: Call) -> Response:
    """POST /recover. The answer does not tell whether the address is known."""
    wanted = call.read(CodeRequest)
    if not call.context.settings.email_enable_signup:
        raise bad_request("Email logins are disabled", "email_provider_disabled")
    if not wanted.email:
        raise bad_request("Password recovery requires an email")
    email = normalise_email(wanted.email)
    challenge = parse_challenge(wanted.code_challenge, wanted.code_challenge_method)
    async with call.transaction() as conn:
        user = await find_by_email(call, conn, email)
        if user is not None:
            await call.note(conn, user, "user_recovery_requested")
            await send_letter(call, conn, user, RECOVERY, challenge)
    return json_response({})


async def resend(call: Call) -> Response:
    """POST /resend: once more what is still waiting for an answer, and nothing for anybody else."""
    wanted = call.read(ResendRequest)
    if wanted.type not in _RESENT:
        kinds = ", ".join(_RESENT)
        raise bad_request(f"Missing one of these types: {kinds}")
    is_mail = wanted.type in ("signup", "email_change")
    if wanted.email and wanted.phone:
        raise bad_request("Only an email address or phone number should be provided.")
    if is_mail and not wanted.email:
        raise bad_request(f"Type provided requires an email address: {wanted.type}")
    if not is_mail and not wanted.phone:
        raise bad_request(f"Type provided requires a phone number: {wanted.type}")
    challenge = parse_challenge(wanted.code_challenge, wanted.code_challenge_method)
    async with call.transaction() as conn:
        if is_mail:
            await _resend_mail(call, conn, wanted, challenge)
            return json_response({})
        message_id = await _resend_text(call, conn, wanted)
    return json_response({"message_id": message_id} if message_id else {})


async def find_by_email(call: Call, conn: TypedConnection, email: str) -> User | None:
    """Who has this address, as a user or by an identity."""
    with naming("Database error finding user"):
        return await users.load_duplicate(conn, email, call.audience)


async def _by_mail(call: Call, wanted: CodeRequest) -> Response:
    settings = call.context.settings
    if not settings.email_enable_signup:
        raise unprocessable("email_provider_disabled", "Email logins are disabled")
    email = normalise_email(wanted.email)
    challenge = parse_challenge(wanted.code_challenge, wanted.code_challenge_method)
    async with call.transaction() as conn:
        user = await find_by_email(call, conn, email)
        if user is None:
            _refuse_new(call, wanted)
            user = await make_user(call, conn, SignUp(email=email, data=wanted.data), "")
        if user.email_confirmed_at is not None:
            await call.note(conn, user, "user_recovery_requested")
            await send_letter(call, conn, user, MAGIC_LINK, challenge)
        elif settings.email_enable_confirmations:
            # confirming the address signs in as well: one link does both
            await call.note(conn, user, "user_confirmation_requested", {"provider": "email"})
            await send_letter(call, conn, user, CONFIRMATION, challenge)
        else:
            await confirm_new_user(call, conn, user)
            await call.note(conn, user, "user_signedup", {"provider": "email"})
            await send_letter(call, conn, user, MAGIC_LINK, challenge)
    return json_response({})


async def _by_text(call: Call, wanted: CodeRequest) -> Response:
    settings = call.context.settings
    if not settings.sms_enable_signup:
        raise bad_request("Unsupported phone provider", "phone_provider_disabled")
    if wanted.code_challenge or wanted.code_challenge_method:
        raise bad_request("PKCE not supported for phone")
    phone = normalise_phone(wanted.phone)
    async with call.transaction() as conn:
        with naming("Database error finding user"):
            user = await users.load_by_phone(conn, phone, call.audience)
        if user is None:
            _refuse_new(call, wanted)
            user = await make_user(call, conn, SignUp(phone=phone, data=wanted.data), "")
            if not settings.sms_enable_confirmations:
                await confirm_new_user(call, conn, user)
                await call.note(conn, user, "user_signedup", {"provider": "phone"})
        await call.note(conn, user, "user_recovery_requested", {"channel": wanted.channel or "sms"})
        message_id = await send_text_code(call, conn, user, "confirmation", phone, wanted.channel)
    return json_response({"message_id": message_id} if message_id else {})


def _refuse_new(call: Call, wanted: CodeRequest) -> None:
    if not wanted.create_user:
        raise unprocessable("otp_disabled", "Signups not allowed for otp")
    if not call.context.settings.enable_signup:
        raise unprocessable("signup_disabled", "Signups not allowed for this instance")


async def _resend_mail(
    call: Call, conn: TypedConnection, wanted: ResendRequest, challenge: Challenge | None
) -> None:
    if not call.context.settings.email_enable_signup:
        raise bad_request("Email logins are disabled", "email_provider_disabled")
    email = normalise_email(wanted.email)
    user = await find_by_email(call, conn, email)
    if user is None:
        return
    if wanted.type == "signup":
        if user.email_confirmed_at is None:
            await call.note(conn, user, "user_confirmation_requested")
            await send_letter(call, conn, user, CONFIRMATION, challenge)
    elif user.email_change:
        await call.note(conn, user, "user_modified")
        await send_email_change(call, conn, user, user.email_change, challenge)


async def _resend_text(call: Call, conn: TypedConnection, wanted: ResendRequest) -> str:
    if not call.context.settings.sms_enable_signup:
        raise bad_request("Phone logins are disabled", "phone_provider_disabled")
    phone = normalise_phone(wanted.phone)
    user = await users.load_by_phone(conn, phone, call.audience)
    if user is None:
        return ""
    if wanted.type == "sms":
        if user.phone_confirmed_at is not None:
            return ""
        return await send_text_code(call, conn, user, "confirmation", phone)
    if not user.phone_change:
        return ""
    return await send_text_code(call, conn, user, "phone_change", user.phone_change)
