"""Our own consent page, for projects that have none: plain HTML forms, no script, nothing from elsewhere.

Between the steps the browser carries a sealed note of who has signed in for which request, valid for a few
minutes and of no use anywhere else; there are no cookies.
"""

from __future__ import annotations

import html
from uuid import UUID

from toft.auth.addresses import normalise_email
from toft.auth.call import Call, parse_uuid
from toft.auth.errors import AuthError
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

_LAYOUT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 4rem auto; max-width: 26rem; padding: 0 1rem }}
label, input, button {{ display: block; width: 100%; box-sizing: border-box }}
input {{ padding: .5rem; margin: 0 0 1rem; font: inherit }}
button {{ padding: .6rem; margin: .5rem 0; font: inherit; cursor: pointer }}
.refusal {{ color: #a00 }}
</style></head><body><main>
<h1>{title}</h1>
{content}
</main></body></html>
"""


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
        return _leave(asked.redirect_url)
    now = int(call.context.clock.unix())
    note = call.context.ring.sign_symmetric(
        {"scope": _NOTE_SCOPE, "user": str(user.id), "for": authorization_id, "exp": now + _NOTE_SECONDS}
    )
    return _consent_form(asked, user.email, note)


async def _settle(call: Call, authorization_id: str, fields: dict[str, str]) -> Response:
    user_id = _read_note(call, fields.get("note", ""), authorization_id)
    async with call.transaction() as conn:
        address = await settle(call, conn, user_id, authorization_id, fields["action"] == "approve")
    return _leave(address)


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
    told = f'<p class="refusal" role="alert">{html.escape(refusal)}</p>' if refusal else ""
    return _page(
        "Sign in to continue",
        f"""{told}<form method="post" action="consent">
<input type="hidden" name="authorization_id" value="{html.escape(authorization_id, quote=True)}">
<label for="email">E-mail</label><input id="email" name="email" type="email" autocomplete="username" required>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button type="submit">Sign in</button></form>""",
        400 if refusal else 200,
    )


def _consent_form(asked: Asked, email: str, note: str) -> Response:
    client, given = asked.client, asked.authorization
    name = html.escape(client.name or str(client.id))
    wishes = "".join(
        f"<li>{html.escape(_SCOPE_WORDS.get(scope, scope))}</li>" for scope in given.scope.split()
    )
    return _page(
        f"{client.name or 'An application'} asks for access",
        f"""<p>Signed in as <b>{html.escape(email)}</b>. <b>{name}</b> wants to:</p><ul>{wishes}</ul>
<p>You will return to <b>{html.escape(given.redirect_uri)}</b>.</p>
<form method="post" action="consent">
<input type="hidden" name="authorization_id" value="{html.escape(given.authorization_id, quote=True)}">
<input type="hidden" name="note" value="{html.escape(note, quote=True)}">
<button type="submit" name="action" value="approve">Allow</button>
<button type="submit" name="action" value="deny">Deny</button></form>""",
    )


def _page(title: str, content: str, status: int = 200) -> Response:
    text = _LAYOUT.format(title=html.escape(title), content=content)
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (
            b"content-security-policy",
            b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ),
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
    ]
    return Response(status, headers, text.encode())


def _leave(address: str) -> Response:
    headers = [(b"location", address.encode("ascii", "ignore")), (b"cache-control", b"no-store")]
    return Response(303, headers)
