"""Second factors: enrolled, challenged, verified and taken away by their owner; looked after by admins."""

from __future__ import annotations

import hmac
import io
from datetime import timedelta
from uuid import UUID

import msgspec
import segno

from toft.auth import totp
from toft.auth.addresses import normalise_phone
from toft.auth.admin import load_named
from toft.auth.call import Call, Signed, naming, parse_uuid
from toft.auth.codes import make_code
from toft.auth.errors import AuthError, bad_request, forbidden, not_found, unprocessable
from toft.auth.hooks import ask
from toft.auth.issue import issue, make_refresh_token, session_response
from toft.auth.mailer import deliver_text, host_of
from toft.auth.model import Factor
from toft.auth.notices import tell_user
from toft.auth.records import factors, sessions, users
from toft.auth.records.factors import Challenge
from toft.auth.represent import factor_json, json_response
from toft.http.message import Response
from toft.pg.typed import TypedConnection

CHALLENGE_SECONDS = 300
_UNVERIFIED_SECONDS = 300
#: what the session remembers of a factor, by its type
METHODS = {"totp": "totp", "phone": "mfa/phone", "webauthn": "mfa/webauthn"}


class Enrolment(msgspec.Struct, frozen=True):
    factor_type: str = ""
    friendly_name: str = ""
    issuer: str = ""
    phone: str = ""


class ChallengeRequest(msgspec.Struct, frozen=True):
    channel: str = ""


class Answer(msgspec.Struct, frozen=True):
    challenge_id: str = ""
    code: str = ""


class FactorChange(msgspec.Struct, frozen=True):
    friendly_name: str = ""
    phone: str = ""


async def enroll(call: Call) -> Response:
    """POST /factors."""
    wanted = call.read(Enrolment)
    async with call.transaction() as conn:
        signed = await _require_owner(call, conn)
        _require_enabled(call, wanted.factor_type, "enroll")
        since = call.now - timedelta(seconds=_UNVERIFIED_SECONDS)
        await factors.delete_unverified(conn, signed.user.id, None, since)
        user = await users.load_user(conn, signed.user.id) or signed.user
        phone = normalise_phone(wanted.phone) if wanted.factor_type == "phone" else ""
        _check_room(call, msgspec.structs.replace(signed, user=user), wanted, phone)
        factor = Factor(
            id=call.context.new_id(),
            user_id=user.id,
            friendly_name=wanted.friendly_name,
            factor_type=wanted.factor_type,
            status="unverified",
            created_at=call.now,
            updated_at=call.now,
            secret=totp.make_secret(call.context.entropy.bytes(20)) if wanted.factor_type == "totp" else "",
            phone=phone,
            last_challenged_at=None,
        )
        with naming("Database error saving new factor"):
            await factors.insert_factor(conn, factor)
        await call.note(conn, user, "factor_in_progress", {"factor_id": str(factor.id)})
    body: dict[str, object] = {"id": str(factor.id), "type": factor.factor_type}
    if factor.friendly_name:
        body["friendly_name"] = factor.friendly_name
    if factor.factor_type == "totp":
        issuer = wanted.issuer or host_of(call.context.settings.site_url)
        uri = totp.make_uri(factor.secret, issuer, user.email or user.phone)
        body["totp"] = {"qr_code": _draw(uri), "secret": factor.secret, "uri": uri}
    else:
        body["phone"] = phone
    return json_response(body)


async def challenge(call: Call) -> Response:
    """POST /factors/{factor_id}/challenge."""
    wanted = call.read(ChallengeRequest)
    async with call.transaction() as conn:
        signed = await _require_owner(call, conn)
        factor = await _load(call, conn, signed.user.id)
        _require_enabled(call, factor.factor_type, "verify")
        asked = Challenge(
            id=call.context.new_id(),
            factor_id=factor.id,
            created_at=call.now,
            verified_at=None,
            ip_address=call.client_ip or "127.0.0.1",
            otp_code=await _send(call, conn, signed, factor, wanted) if factor.factor_type == "phone" else "",
        )
        with naming("Database error saving challenge"):
            await factors.insert_challenge(conn, asked)
        await call.note(conn, signed.user, "challenge_created", {"factor_id": str(factor.id)})
    expires_at = int((asked.created_at + timedelta(seconds=CHALLENGE_SECONDS)).timestamp())
    return json_response({"id": str(asked.id), "type": factor.factor_type, "expires_at": expires_at})


async def verify(call: Call) -> Response:
    """POST /factors/{factor_id}/verify: the session rises to aal2."""
    given = call.read(Answer)
    if not given.code:
        raise bad_request("Code needs to be non-empty")
    challenge_id = parse_uuid(given.challenge_id)
    async with call.transaction() as conn:
        signed = await _require_owner(call, conn)
        if signed.session is None:
            raise forbidden("session_not_found", "A session is needed to verify a factor")
        factor = await _load(call, conn, signed.user.id)
        _require_enabled(call, factor.factor_type, "verify")
        asked = await factors.load_challenge(conn, factor.id, challenge_id) if challenge_id else None
        if asked is None:
            raise unprocessable("mfa_factor_not_found", "MFA factor with the provided challenge ID not found")
        await _check_answer(call, conn, signed, factor, asked, given.code)
        await factors.set_answered(conn, asked.id, call.now)
        await call.note(conn, signed.user, "verification_attempted", {"factor_id": str(factor.id)})
        await factors.set_verified(conn, factor.id, call.now)
        if factor.status != "verified":
            tell_user(call, signed.user, "mfa_factor_enrolled", FactorType=factor.factor_type)
        refresh_token = await _raise_session(call, conn, signed, factor)
        await factors.delete_unverified(conn, signed.user.id, factor.factor_type, None)
        session = await sessions.load_session(conn, signed.session.id)
        user = await users.load_user(conn, signed.user.id)
        assert session is not None and user is not None  # noqa: S101, PT018  (this transaction holds both)
        issued = await issue(call, conn, user, session, refresh_token, METHODS[factor.factor_type])
    return session_response(issued)


async def unenroll(call: Call) -> Response:
    """DELETE /factors/{factor_id}."""
    async with call.transaction() as conn:
        signed = await _require_owner(call, conn)
        factor = await _load(call, conn, signed.user.id)
        is_second = signed.session is not None and signed.session.aal != "aal1"
        if factor.status == "verified" and not is_second:
            raise unprocessable("insufficient_aal", "AAL2 required to unenroll verified factor")
        await _remove(call, conn, factor)
        traits = {"factor_id": str(factor.id), "factor_status": factor.status}
        await call.note(conn, signed.user, "factor_unenrolled", traits)
        tell_user(call, signed.user, "mfa_factor_unenrolled", FactorType=factor.factor_type)
    return json_response({"id": str(factor.id)})


# Administrators ----------------------------------------------------------------------------------------


async def list_factors(call: Call) -> Response:
    """GET /admin/users/{user_id}/factors."""
    async with call.context.pool.lend() as conn:
        await call.require_admin(conn)
        user = await load_named(call, conn)
    return json_response([factor_json(factor) for factor in user.factors])


async def update_factor(call: Call) -> Response:
    """PUT /admin/users/{user_id}/factors/{factor_id}."""
    wanted = call.read(FactorChange)
    async with call.transaction() as conn:
        await call.require_admin(conn)
        user = await load_named(call, conn)
        factor = await _load(call, conn, user.id)
        phone = normalise_phone(wanted.phone) if wanted.phone and factor.factor_type == "phone" else None
        name = wanted.friendly_name or factor.friendly_name
        with naming("Database error updating factor"):
            await factors.rename_factor(conn, factor.id, name, phone, call.now)
        await call.note_admin(conn, "factor_updated", {"factor_id": str(factor.id)})
        factor = await _load(call, conn, user.id)
    return json_response(factor_json(factor))


async def delete_factor(call: Call) -> Response:
    """DELETE /admin/users/{user_id}/factors/{factor_id}."""
    async with call.transaction() as conn:
        await call.require_admin(conn)
        user = await load_named(call, conn)
        factor = await _load(call, conn, user.id)
        await _remove(call, conn, factor)
        traits = {"user_id": str(user.id), "factor_id": str(factor.id)}
        await call.note_admin(conn, "factor_deleted", traits)
    return json_response(factor_json(factor))


# -------------------------------------------------------------------------------------------------------


async def _require_owner(call: Call, conn: TypedConnection) -> Signed:
    signed = await call.require_first_party(conn)
    if signed.user.is_anonymous:
        raise forbidden("no_authorization", "Anonymous user not allowed to perform these actions")
    return signed


def _require_enabled(call: Call, factor_type: str, what: str) -> None:
    if factor_type not in ("totp", "phone"):
        if factor_type == "webauthn":
            raise unprocessable(
                f"mfa_webauthn_{what}_not_enabled", f"MFA {what} is disabled for WebAuthn"
            )  # fmt: skip
        raise bad_request("factor_type needs to be totp, phone, or webauthn")
    if not getattr(call.context.settings, f"mfa_{factor_type}_{what}_enabled"):
        shown = {"totp": "TOTP", "phone": "Phone"}[factor_type]
        raise unprocessable(f"mfa_{factor_type}_{what}_not_enabled", f"MFA {what} is disabled for {shown}")


def _check_room(call: Call, signed: Signed, wanted: Enrolment, phone: str) -> None:
    user = signed.user
    if len(user.factors) >= call.context.settings.mfa_max_enrolled_factors:
        message = "Maximum number of enrolled factors reached, unenroll to continue"
        raise unprocessable("too_many_enrolled_mfa_factors", message)
    if any(factor.friendly_name == wanted.friendly_name for factor in user.factors):
        message = f'A factor with the friendly name "{wanted.friendly_name}" for this user already exists'
        raise unprocessable("mfa_factor_name_conflict", message)
    is_second = signed.session is not None and signed.session.aal != "aal1"
    if user.verified_factors and not is_second:
        raise forbidden("insufficient_aal", "AAL2 required to enroll a new factor")
    if phone and any(factor.phone == phone for factor in user.verified_factors):
        message = "A verified phone factor already exists, unenroll the existing factor to continue"
        raise unprocessable("mfa_verified_factor_exists", message)


async def _load(call: Call, conn: TypedConnection, user_id: UUID) -> Factor:
    factor_id = parse_uuid(call.path["factor_id"])
    factor = await factors.load_factor(conn, user_id, factor_id) if factor_id is not None else None
    if factor is None:
        raise not_found("mfa_factor_not_found", "Factor not found")
    return factor


async def _send(
    call: Call, conn: TypedConnection, signed: Signed, factor: Factor, wanted: ChallengeRequest
) -> str:
    if wanted.channel not in ("", "sms"):
        raise bad_request(
            "Invalid channel, supported values are 'sms' or 'whatsapp'. 'whatsapp' needs Twilio"
        )
    code = make_code(call.context.entropy, call.context.settings.mfa_phone_otp_length)
    await deliver_text(call, conn, signed.user, factor.phone, code, "mfa")
    return code


async def _check_answer(
    call: Call, conn: TypedConnection, signed: Signed, factor: Factor, asked: Challenge, code: str
) -> None:
    """Raise unless the answer is right, in time, and from where the question was asked."""
    if asked.ip_address != (call.client_ip or "127.0.0.1") or asked.verified_at is not None:
        message = "Challenge and verify IP addresses mismatch."
        raise unprocessable("mfa_ip_address_mismatch", message)
    if call.now > asked.created_at + timedelta(seconds=CHALLENGE_SECONDS):
        await factors.delete_challenge(conn, asked.id)
        message = (
            f"MFA challenge {asked.id} has expired, verify against another challenge or create a new one."
        )
        raise unprocessable("mfa_challenge_expired", message).keeping_writes()
    if factor.factor_type == "totp":
        is_right = totp.matches(factor.secret, code, call.now.timestamp())
    else:
        is_right = bool(asked.otp_code) and hmac.compare_digest(asked.otp_code.encode(), code.encode())
    await _ask_about_attempt(call, conn, signed, factor, is_right=is_right)
    if not is_right:
        shown = "TOTP" if factor.factor_type == "totp" else "MFA Phone"
        raise unprocessable("mfa_verification_failed", f"Invalid {shown} code entered")


async def _ask_about_attempt(
    call: Call, conn: TypedConnection, signed: Signed, factor: Factor, *, is_right: bool
) -> None:
    payload = {
        "user_id": str(signed.user.id),
        "factor_id": str(factor.id),
        "factor_type": factor.factor_type,
        "valid": is_right,
    }
    answer = await ask(call, conn, "mfa_verification_attempt", payload)
    if answer is None or answer.get("decision") != "reject":
        return
    await sessions.delete_sessions(conn, signed.user.id)
    message = answer.get("message")
    words = message if isinstance(message, str) and message else "Further MFA verification attempts rejected"
    raise AuthError(403, "mfa_verification_rejected", words).keeping_writes()


async def _raise_session(call: Call, conn: TypedConnection, signed: Signed, factor: Factor) -> str:
    """The session at aal2, with a new refresh token; weaker sessions end. Gives the token."""
    assert signed.session is not None  # noqa: S101  (the caller looked)
    session_id = signed.session.id
    await factors.raise_session(conn, session_id, factor.id, call.now)
    await sessions.note_method(
        conn, call.context.new_id(), session_id, METHODS[factor.factor_type], call.now
    )  # fmt: skip
    active = await sessions.load_active_token(conn, session_id)
    if active is not None:
        await sessions.revoke_token(conn, active.id, call.now)
    # without a parent: the token from before the second factor must not be taken for a lost answer
    child = make_refresh_token(call.context.entropy)
    await sessions.insert_token(conn, child, signed.user.id, session_id, None, call.now)
    await factors.delete_weaker_sessions(conn, signed.user.id)
    return child


async def _remove(call: Call, conn: TypedConnection, factor: Factor) -> None:
    with naming("Database error deleting factor"):
        await factors.lower_sessions(conn, factor.id, METHODS[factor.factor_type], call.now)
        await factors.delete_factor(conn, factor.id)


def _draw(uri: str) -> str:
    """The URI as a QR code, as bare SVG."""
    out = io.BytesIO()
    segno.make(uri, error="m").save(out, kind="svg", scale=4, xmldecl=False)
    return out.getvalue().decode()
