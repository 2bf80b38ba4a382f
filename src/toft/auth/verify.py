"""GET and POST /verify: the answer to a code or link that was sent."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from toft.auth.addresses import normalise_email, normalise_phone
from toft.auth.call import Call, naming
from toft.auth.codes import PKCE_PREFIX, hash_code, is_same_hash
from toft.auth.errors import AuthError, bad_request, forbidden
from toft.auth.identities import find_identity, set_address_identity
from toft.auth.issue import Issued, session_response, start_session
from toft.auth.mailer import FLOW_METHODS, wanted_redirect
from toft.auth.model import User
from toft.auth.notices import tell_user
from toft.auth.records import flows, users
from toft.auth.redirects import add_fragment, add_query
from toft.auth.represent import json_response
from toft.auth.user import CLEARED_TOKENS
from toft.http.message import Response
from toft.pg.typed import TypedConnection

LINK_REFUSED = "Email link is invalid or has expired"
CODE_REFUSED = "Token has expired or is invalid"
ONE_OF_TWO = "Confirmation link accepted. Please proceed to confirm link sent to the other email"

_CONFIRMATION = ("confirmation_token",)
_RECOVERY = ("recovery_token",)
_CHANGE = ("email_change_token_current", "email_change_token_new")
#: which kinds of token a type of link may have
_TOKEN_TYPES = {
    "signup": _CONFIRMATION,
    "invite": _CONFIRMATION,
    "recovery": _RECOVERY,
    "magiclink": _RECOVERY,
    "email_change": _CHANGE,
    "email": _CONFIRMATION + _RECOVERY,
}
_SENT_COLUMNS = {
    "confirmation_token": "confirmation_sent_at",
    "recovery_token": "recovery_sent_at",
    "email_change_token_current": "email_change_sent_at",
    "email_change_token_new": "email_change_sent_at",
    "phone_change_token": "phone_change_sent_at",
}
_PHONE_TYPES = ("sms", "phone_change")
#: the words of an OAuth redirect for a status
_ERRORS_BY_STATUS = {
    400: "invalid_request",
    401: "unauthorized_client",
    403: "access_denied",
    500: "server_error",
    503: "temporarily_unavailable",
}


class Verification(msgspec.Struct, frozen=True):
    """What was sent back: a code with its address, or the hash that a link carries."""

    type: str = ""
    token: str = ""
    token_hash: str = ""
    email: str = ""
    phone: str = ""
    redirect_to: str = ""


class Proof(msgspec.Struct, frozen=True):
    """Whose token it is and which column of theirs it was. `is_pkce`: a code is to be exchanged for it."""

    user: User
    token_type: str
    is_pkce: bool = False


async def verify_code(call: Call) -> Response:
    """POST /verify: a session, or the word that the other address has to agree too."""
    given = call.read(Verification)
    _check(given)
    async with call.transaction() as conn:
        proof = await _prove(call, conn, given)
        user = await _take_effect(call, conn, given.type, proof)
        issued = await start_session(call, conn, user, "otp") if user is not None else None
    if issued is not None:
        return session_response(issued)
    return json_response({"msg": ONE_OF_TWO, "code": "200"})


async def verify_link(call: Call) -> Response:
    """GET /verify: a browser comes with a link; it is always sent on."""
    given = Verification(type=call.query.get("type", ""), token_hash=call.query.get("token", ""))
    if not given.type or not given.token_hash:
        raise bad_request("Verify requires a verification type and a token")
    target = wanted_redirect(call)
    is_pkce = given.token_hash.startswith(PKCE_PREFIX)
    try:
        return await _follow_link(call, given, target, is_pkce=is_pkce)
    except AuthError as error:
        return _redirect(_refusal_address(target, error, in_query=is_pkce))


async def _follow_link(call: Call, given: Verification, target: str, *, is_pkce: bool) -> Response:
    _check(given)
    async with call.transaction() as conn:
        proof = await _prove_by_hash(call, conn, given)
        # by what is stored: a link whose prefix was cut off does not end without the verifier either
        is_pkce = is_pkce or proof.is_pkce
        user = await _take_effect(call, conn, given.type, proof)
        if user is None:
            told = {"message": ONE_OF_TWO, "sb": ""}
            address = add_fragment(target, told)
            return _redirect(add_query(address, {"message": ONE_OF_TWO}) if is_pkce else address)
        if is_pkce:
            return _redirect(add_query(target, {"code": await _issue_code(call, conn, given.type, user)}))
        issued = await start_session(call, conn, user, "otp")
    return _redirect(add_fragment(target, session_members(issued, given.type)))


def session_members(issued: Issued, kind: str) -> dict[str, str]:
    """What an implicit flow hands over in the fragment."""
    return {
        "access_token": issued.access_token,
        "expires_at": str(issued.expires_at),
        "expires_in": str(issued.expires_in),
        "refresh_token": issued.refresh_token,
        "sb": "",
        "token_type": "bearer",
        "type": kind,
    }


async def _issue_code(call: Call, conn: TypedConnection, kind: str, user: User) -> str:
    """The code of the flow that the link belongs to."""
    kinds = ("signup", "magiclink") if kind == "email" else (kind,)
    for name in kinds:
        flow = await flows.load_newest_flow(conn, user.id, FLOW_METHODS[name])
        if flow is not None:
            await flows.note_code_issued(conn, flow.id, call.now)
            return flow.auth_code
    raise forbidden("flow_state_not_found", "No valid flow state found for user")


def _check(given: Verification) -> None:
    if not given.type:
        raise bad_request("Verify requires a verification type")
    if not given.token and not given.token_hash:
        raise bad_request("Verify requires a token or a token hash")
    if given.type not in _TOKEN_TYPES and given.type not in _PHONE_TYPES:
        raise bad_request(f"Unsupported verification type: {given.type}")
    if given.token_hash and given.type in _PHONE_TYPES:
        raise bad_request("Only the token_hash and type should be provided for mails")


# Whose token is it? ------------------------------------------------------------------------------------


async def _prove(call: Call, conn: TypedConnection, given: Verification) -> Proof:
    if given.token_hash:
        if given.token or given.email or given.phone or given.redirect_to:
            raise bad_request("Only the token_hash and type should be provided")
        return await _prove_by_hash(call, conn, given)
    if given.type in _PHONE_TYPES:
        return await _prove_by_text_code(call, conn, given)
    return await _prove_by_mail_code(call, conn, given)


async def _prove_by_hash(call: Call, conn: TypedConnection, given: Verification) -> Proof:
    bare = given.token_hash.removeprefix(PKCE_PREFIX)
    hashes = [bare, PKCE_PREFIX + bare]
    found = await flows.find_token_owner(conn, list(_TOKEN_TYPES[given.type]), hashes)
    user = await users.lock_user(conn, found[0]) if found is not None else None
    if user is not None:
        # another answer to the same link may have been quicker
        found = await flows.find_token_owner(conn, list(_TOKEN_TYPES[given.type]), hashes)
    if found is None or user is None or not _is_in_time(call, user, found[1]):
        raise forbidden("otp_expired", LINK_REFUSED)
    _refuse_banned(call, user)
    return Proof(user, found[1], found[2].startswith(PKCE_PREFIX))


async def _prove_by_mail_code(call: Call, conn: TypedConnection, given: Verification) -> Proof:
    if not given.email:
        raise bad_request("Only an email address or phone number should be provided on verify")
    email = normalise_email(given.email)
    hashed = hash_code(email, given.token)
    if given.type == "email_change":
        user = await users.load_by_email_change(conn, email, call.audience)
    else:
        user = await users.load_duplicate(conn, email, call.audience)
    user = await users.lock_user(conn, user.id) if user is not None else None
    if user is not None:
        _refuse_banned(call, user)
        for token_type in _TOKEN_TYPES[given.type]:
            if is_same_hash(getattr(user, token_type), hashed) and _is_in_time(call, user, token_type):
                return Proof(user, token_type)
    raise forbidden("otp_expired", CODE_REFUSED)


async def _prove_by_text_code(call: Call, conn: TypedConnection, given: Verification) -> Proof:
    if not given.phone:
        raise bad_request("Only an email address or phone number should be provided on verify")
    phone = normalise_phone(given.phone)
    is_change = given.type == "phone_change"
    load = users.load_by_phone_change if is_change else users.load_by_phone
    token_type = "phone_change_token" if is_change else "confirmation_token"
    user = await load(conn, phone, call.audience)
    user = await users.lock_user(conn, user.id) if user is not None else None
    if user is not None:
        _refuse_banned(call, user)
        known = call.context.settings.sms_test_otp.get(phone)
        if known is not None and known == given.token:
            return Proof(user, token_type)
        is_same = is_same_hash(getattr(user, token_type), hash_code(phone, given.token))
        if is_same and _is_in_time(call, user, token_type, by_text=True):
            return Proof(user, token_type)
    raise forbidden("otp_expired", CODE_REFUSED)


def _is_in_time(call: Call, user: User, token_type: str, *, by_text: bool = False) -> bool:
    """Validity counts from the row's own time, not from the token's."""
    settings = call.context.settings
    sent_at: datetime | None = getattr(user, _SENT_COLUMNS[token_type])
    lifetime = settings.sms_otp_expiry_seconds if by_text else settings.email_otp_expiry_seconds
    return sent_at is not None and call.now <= sent_at + timedelta(seconds=lifetime)


def _refuse_banned(call: Call, user: User) -> None:
    if user.is_banned(call.now):
        raise forbidden("user_banned", "User is banned")


# What follows from it ----------------------------------------------------------------------------------


async def _take_effect(call: Call, conn: TypedConnection, kind: str, proof: Proof) -> User | None:
    """The user as changed; None when another address has to agree first."""
    user = proof.user
    if proof.token_type in _CHANGE:
        return await _change_email(call, conn, user, proof.token_type)
    changes: dict[str, Any] = {}
    if proof.token_type == "phone_change_token":  # noqa: S105  (a column's name)
        return await _change_phone(call, conn, user)
    if kind == "sms":
        if user.phone_confirmed_at is None:
            changes["phone_confirmed_at"] = call.now
        await call.note(conn, user, "user_signedup" if changes else "login")
    else:
        await call.note(conn, user, _AUDITED.get(kind, "login"))
        if user.email_confirmed_at is None:
            changes["email_confirmed_at"] = call.now
    provider = "phone" if kind == "sms" else "email"
    if changes:
        changes["raw_user_meta_data"] = {**user.user_metadata, f"{provider}_verified": True}
        identity = find_identity(user, provider)
        if identity is not None:
            await users.update_identity_data(conn, identity, call.now, {f"{provider}_verified": True})
    await _clear(call, conn, user, changes)
    return await users.load_user(conn, user.id)


_AUDITED = {"signup": "user_signedup", "invite": "invite_accepted"}


async def _change_email(call: Call, conn: TypedConnection, user: User, token_type: str) -> User | None:
    is_first = user.email_change_confirm_status == 0
    if call.context.settings.email_double_confirm_changes and user.email and is_first:
        with naming("Database error updating user"):
            await users.update_user(
                conn, user.id, call.now, {"email_change_confirm_status": 1, token_type: ""}
            )
            await flows.delete_token(conn, user.id, token_type)
        return None
    await call.note(conn, user, "user_modified")
    new_email = user.email_change
    changes = {
        "email": new_email,
        "email_change": "",
        "email_change_confirm_status": 0,
        "email_confirmed_at": user.email_confirmed_at or call.now,
        "raw_user_meta_data": {**user.user_metadata, "email": new_email, "email_verified": True},
        **_made_permanent(user),
    }
    await _clear(call, conn, user, changes)
    changed = await set_address_identity(call, conn, user, "email", new_email, is_verified=True)
    tell_user(call, changed, "email_changed", to=user.email, OldEmail=user.email)
    return changed


async def _change_phone(call: Call, conn: TypedConnection, user: User) -> User:
    await call.note(conn, user, "user_modified")
    changes = {
        "phone": user.phone_change,
        "phone_change": "",
        "phone_confirmed_at": call.now,
        **_made_permanent(user),
    }
    await _clear(call, conn, user, changes)
    changed = await set_address_identity(call, conn, user, "phone", user.phone_change, is_verified=True)
    tell_user(call, changed, "phone_changed", OldPhone=user.phone)
    return changed


def _made_permanent(user: User) -> dict[str, Any]:
    return {"is_anonymous": False} if user.is_anonymous else {}


async def _clear(call: Call, conn: TypedConnection, user: User, changes: dict[str, Any]) -> None:
    """Write the changes; nothing else that was sent before works any more."""
    pending = {name: "" for name in CLEARED_TOKENS if getattr(user, name)}
    with naming("Database error updating user"):
        await users.update_user(conn, user.id, call.now, {**pending, **changes})
        await flows.delete_tokens(conn, user.id)


# Where the browser goes --------------------------------------------------------------------------------


def refusal_members(error: AuthError) -> dict[str, str]:
    """A refusal as a browser carries it, in OAuth's words."""
    return {
        "error": _ERRORS_BY_STATUS.get(error.status, "invalid_request"),
        "error_code": error.code,
        "error_description": error.message,
    }


def _refusal_address(target: str, error: AuthError, *, in_query: bool) -> str:
    members = refusal_members(error)
    address = add_fragment(target, {**members, "sb": ""})
    return add_query(address, members) if in_query else address


def _redirect(address: str) -> Response:
    return Response(303, [(b"location", address.encode("ascii", "ignore"))])
