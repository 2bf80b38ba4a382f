"""POST /logout: end this session, the others, or all."""

from __future__ import annotations

from toft.auth.call import Call
from toft.auth.errors import bad_request
from toft.auth.records import sessions
from toft.auth.represent import empty_response
from toft.http.message import Response


async def logout(call: Call) -> Response:
    """A token without a session ends them all."""
    scope = call.query.get("scope") or "global"
    if scope not in ("global", "local", "others"):
        raise bad_request(f'Unsupported logout scope "{scope}"')
    async with call.transaction() as conn:
        signed = await call.require_user(conn)
        session = signed.session
        await call.note(conn, signed.user, "logout")
        if session is None or scope == "global":
            await sessions.delete_sessions(conn, signed.user.id)
        elif scope == "local":
            await sessions.delete_session(conn, session.id)
        else:
            await sessions.delete_sessions(conn, signed.user.id, keep=session.id)
    return empty_response()
