"""POST /token: the grants that end in a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, assert_never

import msgspec

from toft.auth.addresses import normalise_phone
from toft.auth.call import Call, naming
from toft.auth.codes import Challenge, check_verifier
from toft.auth.errors import AuthError, OAuthError, bad_request, not_found, unprocessable
from toft.auth.hooks import ask
from toft.auth.issue import (
    TOKEN_LENGTH,
    Issued,
    issue,
    make_refresh_token,
    session_response,
    start_session,
)
from toft.auth.model import RefreshToken, Session, User
from toft.auth.passwords import LONGEST_BYTES, find_weakness, make_rules
from toft.auth.records import flows, sessions, users
from toft.auth.rotation import (
    Branch,
    Limits,
    Refuse,
    Repeat,
    Shown,
    Swap,
    decide_refresh,
    decide_session_end,
)
from toft.auth.social import id_token
from toft.http.message import Response
from toft.pg.sqlstate import PostgresError
from toft.pg.typed import TypedConnection

#: how long a PKCE code may be exchanged
FLOW_SECONDS = 300

_LOCK_NOT_AVAILABLE = "55P03"
_UNUSABLE = "Refresh token is not valid"


class PasswordGrant(msgspec.Struct, frozen=True):
    email: str = ""
    phone: str = ""
    password: str = ""


class RefreshGrant(msgspec.Struct, frozen=True):
    refresh_token: str = ""


class PkceGrant(msgspec.Struct, frozen=True):
    auth_code: str = ""
    code_verifier: str = ""


async def token(call: Call) -> Response:
    """Choose the grant."""
    grant = _GRANTS.get(call.query.get("grant_type", ""))
    if grant is None:
        raise bad_request("unsupported_grant_type", "invalid_credentials")
    return await grant(call)


# password ----------------------------------------------------------------------------------------------


async def _password(call: Call) -> Response:
    given = call.read(PasswordGrant)
    async with call.context.pool.lend() as conn:
        user = await _find_by_address(call, conn, given)
    if user is None or not user.encrypted_password:
        await call.context.passwords.pretend(given.password)
        raise _wrong_credentials()
    if user.is_banned(call.now):
        raise bad_request("User is banned", "user_banned")
    is_right = await call.context.passwords.matches(given.password, user.encrypted_password)
    async with call.transaction() as conn:
        await _ask_about_attempt(call, conn, user, is_right)
        if not is_right:
            raise _wrong_credentials()
        if given.email and user.email_confirmed_at is None:
            raise bad_request("Email not confirmed", "email_not_confirmed")
        if given.phone and user.phone_confirmed_at is None:
            raise bad_request("Phone not confirmed", "phone_not_confirmed")
        provider = "email" if given.email else "phone"
        await call.note(conn, user, "login", {"provider": provider})
        issued = await start_session(call, conn, user, "password")
    return session_response(issued, _weakness(call, given.password))


async def _find_by_address(call: Call, conn: TypedConnection, given: PasswordGrant) -> User | None:
    settings = call.context.settings
    if given.email and given.phone:
        raise bad_request("Only an email address or phone number should be provided on login.")
    with naming("Database error querying schema"):
        if given.email:
            if not settings.email_enable_signup:
                raise unprocessable("email_provider_disabled", "Email logins are disabled")
            return await users.load_by_email(conn, given.email.lower(), call.audience)
        if given.phone:
            if not settings.sms_enable_signup:
                raise unprocessable("phone_provider_disabled", "Phone logins are disabled")
            return await users.load_by_phone(conn, normalise_phone(given.phone), call.audience)
    raise bad_request("missing email or phone")


async def _ask_about_attempt(call: Call, conn: TypedConnection, user: User, is_right: bool) -> None:
    payload = {"user_id": str(user.id), "valid": is_right}
    answer = await ask(call, conn, "password_verification_attempt", payload)
    if answer is None or answer.get("decision") != "reject":
        return
    if answer.get("should_logout_user"):
        await sessions.delete_sessions(conn, user.id)
    message = answer.get("message")
    words = message if isinstance(message, str) and message else "Invalid login credentials"
    raise bad_request(words, "invalid_credentials").keeping_writes()


def _wrong_credentials() -> AuthError:
    return bad_request("Invalid login credentials", "invalid_credentials")


def _weakness(call: Call, password: str) -> dict[str, Any]:
    """A right password that could not be set today is told beside the session."""
    settings = call.context.settings
    rules = make_rules(settings.minimum_password_length, settings.password_requirements)
    weakness = find_weakness(password, rules) if len(password.encode()) <= LONGEST_BYTES else None
    if weakness is None:
        return {}
    return {"weak_password": {"message": weakness.message, **weakness.extra["weak_password"]}}


# refresh_token -----------------------------------------------------------------------------------------


async def _refresh(call: Call) -> Response:
    given = call.read(RefreshGrant).refresh_token
    if not given:
        raise bad_request("refresh_token required")
    return session_response(await refresh(call, given, client_id=None))


async def refresh(call: Call, given: str, *, client_id: str | None) -> Issued:
    """Go on with a session. `client_id`: the OAuth client that asks, None for the user's own app."""
    if len(given) < TOKEN_LENGTH or not given.isascii():
        raise bad_request(_UNUSABLE)
    try:
        async with call.transaction() as conn:
            await conn.execute("set local lock_timeout = '5s'")
            return await _refresh_locked(call, conn, given, client_id)
    except PostgresError as error:
        if error.sqlstate == _LOCK_NOT_AVAILABLE:
            message = "Too many concurrent token refresh requests on the same session or refresh token"
            raise AuthError(409, "conflict", message) from None
        raise


async def _refresh_locked(call: Call, conn: TypedConnection, given: str, client_id: str | None) -> Issued:
    shown = await sessions.load_token(conn, given)
    if shown is None:
        raise bad_request("Invalid Refresh Token: Refresh Token Not Found", "refresh_token_not_found")
    session = await sessions.load_session(conn, shown.session_id, locks=True) if shown.session_id else None
    user = await users.load_user(conn, session.user_id) if session is not None else None
    if session is None or user is None:
        await sessions.delete_token(conn, shown.id)
        message = "Invalid Refresh Token: No Valid Session Found"
        raise bad_request(message, "session_not_found").keeping_writes()
    if user.is_banned(call.now):
        raise bad_request("Invalid Refresh Token: User Banned", "user_banned")
    # whoever held the lock may have used the token meanwhile
    again, active = await sessions.load_token_and_active(conn, given, session.id)
    shown = again or shown
    _check_limits(call, session, shown)
    if client_id != (str(session.oauth_client_id) if session.oauth_client_id is not None else None):
        raise OAuthError("invalid_client", "Refresh token does not belong to this client")
    refresh_token = await _rotate(call, conn, user, session, shown, active)
    await sessions.note_refresh(conn, session.id, call.now, call.user_agent, call.client_ip)
    await call.note(conn, user, "token_refreshed")
    return await issue(call, conn, user, session, refresh_token, "token_refresh")


def _check_limits(call: Call, session: Session, shown: RefreshToken) -> None:
    settings = call.context.settings
    active_at = session.refreshed_at or shown.updated_at or session.created_at
    reason = decide_session_end(
        Limits(settings.session_timebox_seconds, settings.session_inactivity_seconds),
        now=call.now.timestamp(),
        created_at=session.created_at.timestamp(),
        active_at=active_at.timestamp(),
        not_after=session.not_after.timestamp() if session.not_after is not None else None,
    )
    if reason is not None:
        raise bad_request(f"Invalid Refresh Token: Session Expired{reason}", "session_expired")


async def _rotate(
    call: Call,
    conn: TypedConnection,
    user: User,
    session: Session,
    shown: RefreshToken,
    active: RefreshToken | None,
) -> str:
    settings = call.context.settings
    since = (call.now - shown.updated_at).total_seconds() if shown.updated_at is not None else 0
    outcome = decide_refresh(
        Shown(
            is_revoked=shown.is_revoked,
            revoked_seconds_ago=since,
            has_active=active is not None,
            is_parent_of_active=active is not None and active.parent == shown.token,
        ),
        reuse_interval_seconds=settings.refresh_token_reuse_interval_seconds,
        rotates=settings.enable_refresh_token_rotation,
    )
    match outcome:
        case Swap():
            await call.note(conn, user, "token_revoked")
            child = make_refresh_token(call.context.entropy)
            await sessions.swap_token(conn, shown, child, user.id, session.id, call.now)
            return child
        case Branch():
            child = make_refresh_token(call.context.entropy)
            await sessions.insert_token(conn, child, user.id, session.id, shown.token, call.now)
            return child
        case Repeat():
            assert active is not None  # noqa: S101  (that is what Repeat was decided from)
            return active.token
        case Refuse(ends_family):
            message = "Invalid Refresh Token: Already Used"
            refusal = bad_request(message, "refresh_token_already_used")
            if ends_family:
                await sessions.revoke_family(conn, session.id, call.now)
            raise refusal.keeping_writes()
        case _:
            assert_never(outcome)


# pkce --------------------------------------------------------------------------------------------------


async def _pkce(call: Call) -> Response:
    given = call.read(PkceGrant)
    if not given.auth_code or not given.code_verifier:
        raise bad_request("invalid request: both auth code and code verifier should be non-empty")
    async with call.transaction() as conn:
        flow = await flows.load_flow_by_code(conn, given.auth_code)
        user = await users.load_user(conn, flow.user_id) if flow is not None and flow.user_id else None
        if flow is None or user is None:
            raise not_found("flow_state_not_found", "invalid flow state, no valid flow state found")
        begun_at = flow.created_at
        if flow.authentication_method == "magiclink" and flow.code_issued_at is not None:
            begun_at = flow.code_issued_at
        if call.now > begun_at + timedelta(seconds=FLOW_SECONDS):
            raise unprocessable("flow_state_expired", "invalid flow state, flow state has expired")
        check_verifier(Challenge(flow.challenge, flow.challenge_method), given.code_verifier)
        await flows.delete_flow(conn, flow.id)
        await call.note(conn, user, "login", {"provider": flow.provider_type})
        issued = await start_session(call, conn, user, flow.authentication_method)
    extra: dict[str, Any] = {}
    if flow.provider_access_token:
        extra["provider_token"] = flow.provider_access_token
    if flow.provider_refresh_token:
        extra["provider_refresh_token"] = flow.provider_refresh_token
    return session_response(issued, extra)


# web3, which is switched off --------------------------------------------------------------------------


async def _web3(call: Call) -> Response:
    raise unprocessable("web3_provider_disabled", "Web3 provider is disabled")


_GRANTS: dict[str, Callable[[Call], Awaitable[Response]]] = {
    "password": _password,
    "refresh_token": _refresh,
    "pkce": _pkce,
    "id_token": id_token.grant,
    "web3": _web3,
}
