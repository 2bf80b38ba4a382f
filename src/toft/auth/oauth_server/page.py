"""Our own consent page, for projects that have none: plain HTML forms, no script, nothing from elsewhere.

Between the steps the browser carries a sealed note of who has signed in for which request, valid for a few
minutes and of no use anywhere else; there are no cookies.
"""

from __future__ import annotations

from uuid import UUID

from toft.auth.addresses import normalise_email
from toft.auth.call import Call, parse_uuid
from toft.auth.errors import AuthError
from toft.auth.html import escape, leave, page
from toft.auth.oauth_server.clients import require_enabled
from toft.auth.oauth_server.consent import Asked, open_authorization, settle
from toft.auth.records import users
from toft.http.message import Response
from toft.tokens.caller import TokenError

_NOTE_SECONDS = 600
_NOTE_SCOPE = "consent-page"

_SCOPE_WORDS = {
    "openid": "know who you are",
    "profile": "see your name and picture",
    "email": "see your e-mail address",
    "phone": "see your phone number",
    "offline_access": "act for you while you are away",
}


async def show(call: Call) -> Response:
    """GET /oauth/consent?authorization_id=…: the form to sign in."""
    require_enabled(call)
    return _sign_in_form(call.query.get("authorization_id", ""), "")


async def answer(call: Call) -> Response:
    """POST /oauth/consent: signing in, then the answer."""
    require_enabled(call)
    fields = {name: value for name, value in call.fields.items() if isinstance(value, str)}
    authorization_id = fields.get("authorization_id", "")
    try:
        if "action" in fields:
            return await _settle(call, authorization_id, fields)
        return await _sign_in(call, authorization_id, fields)
    except AuthError as error:
        if error.status >= 500:
            raise
        return _sign_in_form(authorization_id, error.message)


async def _sign_in(call: Call, authorization_id: str, fields: dict[str, str]) -> Response:
    password = fields.get("password", "")
    wrong = AuthError(400, "invalid_credentials", "Invalid login credentials")
    email = normalise_email(fields.get("email", ""))
    async with call.context.pool.lend() as conn:
        user = await users.load_by_email(conn, email, call.context.settings.jwt_audience)
    if user is None or user.is_banned(call.now):
        await call.context.passwords.pretend(password)
        raise wrong
    if not await call.context.passwords.matches(password, user.encrypted_password):
        raise wrong
    if user.email_confirmed_at is None:
        raise AuthError(400, "email_not_confirmed", "Email not confirmed")
    if user.verified_factors:
        raise AuthError(400, "insufficient_aal", "This account has a second factor: sign in through the app")
    async with call.transaction() as conn:
        asked = await open_authorization(call, conn, user, authorization_id)
    if asked.redirect_url is not None:
        return leave(asked.redirect_url)
    now = int(call.context.clock.unix())
    note = call.context.ring.sign_symmetric(
        {"scope": _NOTE_SCOPE, "user": str(user.id), "for": authorization_id, "exp": now + _NOTE_SECONDS}
    )
    return _consent_form(asked, user.email, note)


async def _settle(call: Call, authorization_id: str, fields: dict[str, str]) -> Response:
    user_id = _read_note(call, fields.get("note", ""), authorization_id)
    async with call.transaction() as conn:
        address = await settle(call, conn, user_id, authorization_id, fields["action"] == "approve")
    return leave(address)


def _read_note(call: Call, note: str, authorization_id: str) -> UUID:
    refused = AuthError(403, "bad_jwt", "Please sign in again")
    try:
        claims = call.context.ring.verify(note, call.context.clock.unix())
    except TokenError:
        raise refused from None
    user = claims.get("user")
    user_id = parse_uuid(user) if isinstance(user, str) else None
    if claims.get("scope") != _NOTE_SCOPE or claims.get("for") != authorization_id or user_id is None:
        raise refused
    return user_id


def _sign_in_form(authorization_id: str, refusal: str) -> Response:
    told = f'<p class="refusal" role="alert">{escape(refusal)}</p>' if refusal else ""
    return page(
        "Sign in to continue",
        f"""{told}<form method="post" action="consent">
<input type="hidden" name="authorization_id" value="{escape(authorization_id)}">
<label for="email">E-mail</label><input id="email" name="email" type="email" autocomplete="username" required>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button type="submit">Sign in</button></form>""",
        400 if refusal else 200,
    )


def _consent_form(asked: Asked, email: str, note: str) -> Response:
    client, given = asked.client, asked.authorization
    name = escape(client.name or str(client.id))
    wishes = "".join(f"<li>{escape(_SCOPE_WORDS.get(scope, scope))}</li>" for scope in given.scope.split())
    return page(
        f"{client.name or 'An application'} asks for access",
        f"""<p>Signed in as <b>{escape(email)}</b>. <b>{name}</b> wants to:</p><ul>{wishes}</ul>
<p>You will return to <b>{escape(given.redirect_uri)}</b>.</p>
<form method="post" action="consent">
<input type="hidden" name="authorization_id" value="{escape(given.authorization_id)}">
<input type="hidden" name="note" value="{escape(note)}">
<button type="submit" name="action" value="approve">Allow</button>
<button type="submit" name="action" value="deny">Deny</button></form>""",
    )
