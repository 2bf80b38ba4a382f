"""POST /signup: with a password, or anonymously."""

from __future__ import annotations

from typing import Any

import msgspec

from toft.auth.addresses import normalise_email, normalise_phone
from toft.auth.call import Call, naming
from toft.auth.codes import Challenge, parse_challenge
from toft.auth.errors import bad_request, unprocessable
from toft.auth.hooks import after_creation, ask
from toft.auth.issue import Issued, session_response, start_session
from toft.auth.mailer import CONFIRMATION, send_letter, send_text_code
from toft.auth.model import Json, User
from toft.auth.passwords import check_new_password, make_rules
from toft.auth.records import users
from toft.auth.represent import json_response, user_json, write_instant
from toft.http.message import Response
from toft.pg.typed import TypedConnection


class SignUp(msgspec.Struct, frozen=True):
    """The body of a sign-up."""

    email: str = ""
    phone: str = ""
    password: str = ""
    data: Json = {}
    channel: str = ""
    code_challenge: str = ""
    code_challenge_method: str = ""


async def signup(call: Call) -> Response:
    """Create a user. The answer is a session when nothing needs confirming, else the user alone."""
    wanted = call.read(SignUp)
    if not wanted.email and not wanted.phone:
        return await _sign_up_anonymously(call, wanted)
    challenge = _check(call, wanted)
    if wanted.email:
        wanted = msgspec.structs.replace(wanted, email=normalise_email(wanted.email))
    else:
        wanted = msgspec.structs.replace(wanted, phone=normalise_phone(wanted.phone))
    async with call.context.pool.lend() as conn:
        existing = await _find(call, conn, wanted)
    if existing is not None and _is_confirmed(existing, wanted):
        return await _repeat(call, wanted, existing)
    # outside of any transaction: hashing takes longer than everything else together
    # and as long for somebody who is known already, so that the time tells nothing
    hashed = await call.context.passwords.hash(wanted.password)
    async with call.transaction() as conn:
        user = existing or await make_user(call, conn, wanted, hashed)
        if _autoconfirms(call, wanted):
            await confirm_new_user(call, conn, user)
            await call.note(conn, user, "user_signedup", _traits(wanted))
        elif wanted.email:
            await call.note(conn, user, "user_confirmation_requested", _traits(wanted))
            await send_letter(call, conn, user, CONFIRMATION, challenge)
        else:
            await call.note(conn, user, "user_confirmation_requested", _traits(wanted))
            await send_text_code(call, conn, user, "confirmation", wanted.phone, wanted.channel)
        user = await users.load_user(conn, user.id) or user
    if not _autoconfirms(call, wanted):
        if user.invited_at is not None:
            user = msgspec.structs.replace(user, identities=[], user_metadata={}, app_metadata={})
        return json_response(user_json(user))
    return session_response(await sign_in(call, user, "password"))


async def sign_in(call: Call, user: User, method: str) -> Issued:
    """A session in a transaction of its own."""
    async with call.transaction() as conn:
        await call.note(conn, user, "login", {"provider": "phone" if not user.email else "email"})
        return await start_session(call, conn, user, method)


async def make_user(
    call: Call, conn: TypedConnection, wanted: SignUp, hashed: str, *, tells_identity: bool = True
) -> User:
    """The rows of a new, unconfirmed user with one identity, in the order that triggers rely on.

    tells_identity: the user's own metadata repeats what the identity says, as after a sign-up.
    """
    provider = "email" if wanted.email else "phone"
    user = User(
        id=call.context.new_id(),
        aud=call.audience,
        role=call.context.settings.default_role,
        email=wanted.email,
        phone=wanted.phone,
        encrypted_password=hashed,
        app_metadata={"provider": provider, "providers": [provider]},
        user_metadata=wanted.data,
        created_at=call.now,
        updated_at=call.now,
    )
    await ask(call, conn, "before_user_created", {"user": user_json(user)})
    with naming("Database error saving new user"):
        await users.insert_user(conn, user, call.now)
        data = identity_data(user, wanted.data)
        await users.insert_identity(
            conn, call.context.new_id(), user.id, provider, str(user.id), data, call.now
        )  # fmt: skip
        if tells_identity:
            # a trigger of the project's may have changed the row
            stored = await users.load_user(conn, user.id) or user
            metadata = {**data, **stored.user_metadata}
            await users.update_user(conn, user.id, call.now, {"raw_user_meta_data": metadata})
    after_creation(call, user)
    return await users.load_user(conn, user.id) or user


def identity_data(user: User, data: Json) -> Json:
    """What is known of a fresh e-mail or phone identity."""
    address = {"email": user.email} if user.email else {"phone": user.phone}
    return {"sub": str(user.id), **address, "email_verified": False, "phone_verified": False, **data}


async def confirm_new_user(call: Call, conn: TypedConnection, user: User) -> None:
    """Nobody has to click: the address or number counts as confirmed."""
    changes: dict[str, object]
    if user.email:
        metadata = {**user.user_metadata, "email_verified": True}
        changes = {"email_confirmed_at": call.now, "confirmation_token": "", "raw_user_meta_data": metadata}
    else:
        metadata = {**user.user_metadata, "phone_verified": True}
        changes = {"phone_confirmed_at": call.now, "confirmation_token": "", "raw_user_meta_data": metadata}
    with naming("Database error updating user"):
        await users.update_user(conn, user.id, call.now, changes)


async def _sign_up_anonymously(call: Call, wanted: SignUp) -> Response:
    settings = call.context.settings
    if not settings.enable_anonymous_sign_ins:
        raise unprocessable("anonymous_provider_disabled", "Anonymous sign-ins are disabled")
    if not settings.enable_signup:
        raise unprocessable("signup_disabled", "Signups not allowed for this instance")
    user = User(
        id=call.context.new_id(),
        aud=call.audience,
        role=settings.default_role,
        email="",
        phone="",
        encrypted_password="",
        app_metadata={},
        user_metadata=wanted.data,
        created_at=call.now,
        updated_at=call.now,
        is_anonymous=True,
    )
    async with call.transaction() as conn:
        await ask(call, conn, "before_user_created", {"user": user_json(user)})
        with naming("Database error creating anonymous user"):
            await users.insert_user(conn, user, call.now)
        after_creation(call, user)
        issued = await start_session(call, conn, user, "anonymous")
    return session_response(issued)


def _check(call: Call, wanted: SignUp) -> Challenge | None:
    settings = call.context.settings
    if not settings.enable_signup:
        raise unprocessable("signup_disabled", "Signups not allowed for this instance")
    if not wanted.password:
        raise bad_request("Signup requires a valid password")
    check_new_password(
        wanted.password, make_rules(settings.minimum_password_length, settings.password_requirements)
    )
    if wanted.email and wanted.phone:
        raise bad_request("Only an email address or phone number should be provided on signup.")
    if wanted.phone and (wanted.code_challenge or wanted.code_challenge_method):
        raise bad_request("PKCE not supported for phone signups")
    if wanted.phone and wanted.channel not in ("", "sms", "whatsapp"):
        raise bad_request(
            "Invalid channel, supported values are 'sms' or 'whatsapp'. 'whatsapp' needs Twilio"
        )
    challenge = parse_challenge(wanted.code_challenge, wanted.code_challenge_method)
    if wanted.email and not settings.email_enable_signup:
        raise bad_request("Email signups are disabled", "email_provider_disabled")
    if wanted.phone and not settings.sms_enable_signup:
        raise bad_request("Phone signups are disabled", "phone_provider_disabled")
    return challenge


async def _find(call: Call, conn: TypedConnection, wanted: SignUp) -> User | None:
    with naming("Database error finding user"):
        if wanted.email:
            return await users.load_duplicate(conn, wanted.email, call.audience)
        return await users.load_by_phone(conn, wanted.phone, call.audience)


def _is_confirmed(user: User, wanted: SignUp) -> bool:
    return (user.email_confirmed_at if wanted.email else user.phone_confirmed_at) is not None


def _autoconfirms(call: Call, wanted: SignUp) -> bool:
    settings = call.context.settings
    return not (settings.email_enable_confirmations if wanted.email else settings.sms_enable_confirmations)


def _traits(wanted: SignUp) -> dict[str, Any]:
    return {"provider": "email" if wanted.email else "phone"}


async def _repeat(call: Call, wanted: SignUp, existing: User) -> Response:
    """The address is taken. Where mails confirm, the answer must not tell."""
    settings = call.context.settings
    async with call.transaction() as conn:
        await call.note(conn, existing, "user_repeated_signup", _traits(wanted))
    if not settings.email_enable_confirmations or not settings.sms_enable_confirmations:
        raise unprocessable("user_already_exists", "User already registered")
    await call.context.passwords.pretend(wanted.password)
    provider = "email" if wanted.email else "phone"
    now = write_instant(call.now)
    return json_response(
        {
            "id": str(call.context.new_id()),
            "aud": call.audience,
            "role": "",
            "email": wanted.email,
            "phone": wanted.phone,
            "confirmation_sent_at": now,
            "app_metadata": {"provider": provider, "providers": [provider]},
            "user_metadata": wanted.data,
            "identities": [],
            "created_at": now,
            "updated_at": now,
            "is_anonymous": False,
        }
    )
