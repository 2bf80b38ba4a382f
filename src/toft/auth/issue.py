"""Sessions begin and go on here: their rows, their refresh tokens and the access tokens made for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

import msgspec

from toft.auth.call import Call, naming
from toft.auth.errors import AuthError
from toft.auth.hooks import ask
from toft.auth.model import Method, Session, User
from toft.auth.records import sessions, users
from toft.auth.represent import json_response, user_json
from toft.http.message import HeaderList, Response
from toft.pg.typed import TypedConnection
from toft.world import Entropy

_TOKEN_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"  # noqa: S105  (an alphabet)
TOKEN_LENGTH = 12


#: what a token hook has to leave in place, and of which types
_REQUIRED_CLAIMS: dict[str, tuple[type, ...]] = {
    "aud": (str, list),
    "exp": (int, float),
    "iat": (int, float),
    "sub": (str,),
    "email": (str,),
    "phone": (str,),
    "role": (str,),
    "aal": (str,),
    "session_id": (str,),
    "is_anonymous": (bool,),
}


class Issued(msgspec.Struct, frozen=True):
    """A session as it is handed to its owner."""

    user: User
    session: Session
    refresh_token: str
    access_token: str
    expires_in: int
    expires_at: int


class Origin(msgspec.Struct, frozen=True):
    """Where a session comes from when it is not simply the user's own: the OAuth client and its scopes."""

    client_id: UUID | None = None
    scopes: str = ""


async def start_session(
    call: Call, conn: TypedConnection, user: User, method: str, origin: Origin | None = None
) -> Issued:
    """A new session for a user who has just proved who they are by `method`."""
    came_from = origin or Origin()
    session = Session(
        id=call.context.new_id(),
        user_id=user.id,
        created_at=call.now,
        aal="aal1",
        oauth_client_id=came_from.client_id,
        scopes=came_from.scopes,
        amr=[Method(method, call.now)],
    )
    with naming("Database error granting user"):
        refresh_token = make_refresh_token(call.context.entropy)
        await sessions.insert_session(
            conn, session, call.context.new_id(), refresh_token, call.user_agent, call.client_ip
        )
        await users.update_user(conn, user.id, call.now, {"last_sign_in_at": call.now})
    signed_in = await users.load_user(conn, user.id)
    return await issue(call, conn, signed_in or user, session, refresh_token, method)


async def issue(
    call: Call, conn: TypedConnection, user: User, session: Session, refresh_token: str, method: str
) -> Issued:
    """An access token for a session as it stands. `method`: what the token hook is told."""
    issued_at = int(call.context.clock.unix())
    expires_at = issued_at + call.context.settings.jwt_expiry_seconds
    claims = make_claims(call, user, session, issued_at, expires_at)
    claims = await _ask_about_claims(call, conn, user, claims, method)
    return Issued(
        user=user,
        session=session,
        refresh_token=refresh_token,
        access_token=call.context.ring.sign(claims),
        expires_in=expires_at - issued_at,
        expires_at=expires_at,
    )


async def _ask_about_claims(
    call: Call, conn: TypedConnection, user: User, claims: dict[str, Any], method: str
) -> dict[str, Any]:
    """The claims as the project's own hook wants them, if it has one."""
    payload = {"user_id": str(user.id), "claims": claims, "authentication_method": method}
    answer = await ask(call, conn, "custom_access_token", payload)
    if answer is None:
        return claims
    changed = answer.get("claims")
    if not isinstance(changed, dict):
        raise AuthError(500, "unexpected_failure", "output claims field is missing")
    changed = cast("dict[str, Any]", changed)
    faults = [name for name, kinds in _REQUIRED_CLAIMS.items() if not isinstance(changed.get(name), kinds)]
    if faults:
        words = ", ".join(f"{name} is missing or has the wrong type" for name in faults)
        message = f"output claims do not conform to the expected schema: {words}"
        raise AuthError(500, "unexpected_failure", message)
    return changed


def make_claims(call: Call, user: User, session: Session, issued_at: int, expires_at: int) -> dict[str, Any]:
    """What an access token says. Every claim is there although it may be empty."""
    claims: dict[str, Any] = {
        "iss": call.context.settings.jwt_issuer or call.context.external_url,
        "sub": str(user.id),
        "aud": user.aud,
        "exp": expires_at,
        "iat": issued_at,
        "email": user.email,
        "phone": user.phone,
        "app_metadata": user.app_metadata,
        "user_metadata": user.user_metadata,
        "role": user.role,
        "aal": session.aal,
        "amr": methods_json(session.amr),
        "session_id": str(session.id),
        "is_anonymous": user.is_anonymous,
    }
    if session.oauth_client_id is not None:
        claims["client_id"] = str(session.oauth_client_id)
        claims["scope"] = session.scopes
    return claims


def methods_json(amr: Sequence[Method]) -> list[dict[str, Any]]:
    """The `amr` claim, newest first."""
    return [{"method": method.method, "timestamp": int(method.at.timestamp())} for method in amr]


def make_refresh_token(entropy: Entropy) -> str:
    """Twelve letters and digits, uniformly random."""
    out: list[str] = []
    while len(out) < TOKEN_LENGTH:
        # 252 is the largest multiple of 36 that a byte can hold; what is above would favour some letters
        out += [_TOKEN_ALPHABET[byte % 36] for byte in entropy.bytes(16) if byte < 252]
    return "".join(out[:TOKEN_LENGTH])


def session_response(issued: Issued, extra: dict[str, Any] | None = None) -> Response:
    """The answer of everything that signs somebody in."""
    body: dict[str, Any] = {
        "access_token": issued.access_token,
        "token_type": "bearer",
        "expires_in": issued.expires_in,
        "expires_at": issued.expires_at,
        "refresh_token": issued.refresh_token,
        "user": user_json(issued.user),
        **(extra or {}),
    }
    headers: HeaderList = [
        (b"sb-auth-user-id", str(issued.user.id).encode()),
        (b"sb-auth-session-id", str(issued.session.id).encode()),
    ]
    return json_response(body, headers=headers)
