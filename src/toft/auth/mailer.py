"""Codes and links by mail or text message: composed, handed over, and then remembered in the user's row."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from urllib.parse import quote, urlsplit

import msgspec

from toft.auth.call import Call, naming
from toft.auth.codes import PKCE_PREFIX, Challenge, hash_code, make_code
from toft.auth.context import Message
from toft.auth.errors import AuthError, bad_request, too_soon, unprocessable
from toft.auth.hooks import ask, has_hook
from toft.auth.model import Flow, User
from toft.auth.records import flows, users
from toft.auth.redirects import choose_redirect
from toft.auth.represent import user_json
from toft.auth.templates import TemplateFault, fill
from toft.pg.typed import TypedConnection


class Letter(msgspec.Struct, frozen=True):
    """A kind of mail: its template's name, the link's `type`, the columns that remember it, default words."""

    name: str
    link_type: str
    token_column: str
    sent_column: str
    token_type: str
    subject: str
    title: str
    action: str


CONFIRMATION = Letter(
    "confirmation", "signup", "confirmation_token", "confirmation_sent_at", "confirmation_token",
    "Confirm your email address", "Confirm your email address", "Confirm",
)  # fmt: skip
INVITE = Letter(
    "invite", "invite", "confirmation_token", "confirmation_sent_at", "confirmation_token",
    "You've been invited", "You have been invited to {{ .SiteURL }}", "Accept the invitation",
)  # fmt: skip
MAGIC_LINK = Letter(
    "magic_link", "magiclink", "recovery_token", "recovery_sent_at", "recovery_token",
    "Your sign-in link", "Your sign-in link", "Sign in",
)  # fmt: skip
RECOVERY = Letter(
    "recovery", "recovery", "recovery_token", "recovery_sent_at", "recovery_token",
    "Reset your password", "Reset your password", "Reset password",
)  # fmt: skip
EMAIL_CHANGE_NEW = Letter(
    "email_change", "email_change", "email_change_token_new", "email_change_sent_at",
    "email_change_token_new", "Confirm your new email address",
    "Confirm the change of your address from {{ .Email }} to {{ .NewEmail }}", "Confirm",
)  # fmt: skip
EMAIL_CHANGE_CURRENT = Letter(
    "email_change", "email_change", "email_change_token_current", "email_change_sent_at",
    "email_change_token_current", "Confirm the change of your email address", EMAIL_CHANGE_NEW.title,
    "Confirm",
)  # fmt: skip
REAUTHENTICATION = Letter(
    "reauthentication", "reauthentication", "reauthentication_token", "reauthentication_sent_at",
    "reauthentication_token", "{{ .Token }} is your verification code", "Confirm that it is you", "",
)  # fmt: skip

#: how the flow of a PKCE link is remembered, by the link's type
FLOW_METHODS = {
    "signup": "email/signup",
    "invite": "invite",
    "magiclink": "magiclink",
    "recovery": "recovery",
    "email_change": "email_change",
}


class Code(msgspec.Struct, frozen=True):
    """A fresh code for an address, and the hash that its link carries."""

    text: str
    token_hash: str
    link: str


def make_link_code(
    call: Call, letter: Letter, address: str, redirect_to: str, *, is_pkce: bool = False
) -> Code:
    """A code and its link; nothing is sent or remembered."""
    text = make_code(call.context.entropy, call.context.settings.email_otp_length)
    token_hash = (PKCE_PREFIX if is_pkce else "") + hash_code(address, text)
    target = quote(redirect_to, safe=":/?@!$'()*,;%+~") if set(redirect_to) & set("&=#") else redirect_to
    link = f"{call.context.external_url}/verify?token={token_hash}&type={letter.link_type}"
    return Code(text, token_hash, f"{link}&redirect_to={target}")


async def send_letter(
    call: Call, conn: TypedConnection, user: User, letter: Letter, challenge: Challenge | None = None
) -> None:
    """Send a code and link to the user's address, unless one went out a moment ago."""
    check_frequency(call, getattr(user, letter.sent_column))
    if challenge is not None:
        await begin_flow(call, conn, user, FLOW_METHODS[letter.link_type], challenge)
    await _send_code(call, conn, user, letter, user.email, is_pkce=challenge is not None)


async def send_email_change(
    call: Call, conn: TypedConnection, user: User, new_email: str, challenge: Challenge | None
) -> None:
    """Ask the new address, and the current one too where both have to agree."""
    if user.email_change == new_email:
        check_frequency(call, user.email_change_sent_at)
    if challenge is not None:
        await begin_flow(call, conn, user, "email_change", challenge)
    changes = {"email_change": new_email, "email_change_confirm_status": 0, "email_change_token_current": ""}
    with naming("Database error updating user"):
        await users.update_user(conn, user.id, call.now, changes)
    changed = msgspec.structs.replace(user, email_change=new_email)
    is_pkce = challenge is not None
    redirect_to = wanted_redirect(call)
    new = make_link_code(call, EMAIL_CHANGE_NEW, new_email, redirect_to, is_pkce=is_pkce)
    current = None
    if user.email and call.context.settings.email_double_confirm_changes:
        current = make_link_code(call, EMAIL_CHANGE_CURRENT, user.email, redirect_to, is_pkce=is_pkce)
    if has_hook(call, "send_email"):
        # with two codes upstream crosses their names, and webhooks are written for that
        data = _hook_data(call, changed, EMAIL_CHANGE_NEW, new, redirect_to)
        if current is not None:
            data |= {
                "token": current.text, "token_hash_new": current.token_hash,
                "token_new": new.text, "token_hash": new.token_hash,
            }  # fmt: skip
        await ask(call, conn, "send_email", {"user": user_json(changed), "email_data": data})
    else:
        if current is not None:
            await _mail(call, changed, EMAIL_CHANGE_CURRENT, user.email, current, redirect_to)
        await _mail(call, changed, EMAIL_CHANGE_NEW, new_email, new, redirect_to)
    if current is not None:
        await _remember(call, conn, changed, EMAIL_CHANGE_CURRENT, user.email, current)
    await _remember(call, conn, changed, EMAIL_CHANGE_NEW, new_email, new)


async def send_reauthentication(call: Call, conn: TypedConnection, user: User) -> None:
    """A code to the confirmed address or number, for a change that needs a fresh proof."""
    check_frequency(call, user.reauthentication_sent_at)
    if user.email:
        await _send_code(call, conn, user, REAUTHENTICATION, user.email, is_pkce=False)
    else:
        await send_text_code(call, conn, user, "reauthentication", user.phone)


#: what a text message is for → token column, time column, kind of token
TEXT_COLUMNS = {
    "confirmation": ("confirmation_token", "confirmation_sent_at", "confirmation_token"),
    "phone_change": ("phone_change_token", "phone_change_sent_at", "phone_change_token"),
    "reauthentication": ("reauthentication_token", "reauthentication_sent_at", "reauthentication_token"),
}


async def send_text_code(
    call: Call, conn: TypedConnection, user: User, purpose: str, phone: str, channel: str = "sms"
) -> str:
    """A code to a phone number. Gives the message's id; `test-otp` when the number has a code for tests."""
    settings = call.context.settings
    if channel not in ("", "sms"):
        raise bad_request(
            "Invalid channel, supported values are 'sms' or 'whatsapp'. 'whatsapp' needs Twilio"
        )
    token_column, sent_column, token_type = TEXT_COLUMNS[purpose]
    sent_at: datetime | None = getattr(user, sent_column)
    _refuse_haste(call.now, sent_at, settings.sms_max_frequency_seconds, "over_sms_send_rate_limit")
    known = settings.sms_test_otp.get(phone)
    code = known or make_code(call.context.entropy, 6)
    if known is None:
        await deliver_text(call, conn, user, phone, code, purpose)
    token_hash = hash_code(phone, code)
    with naming("Database error updating user"):
        await users.update_user(conn, user.id, call.now, {token_column: token_hash, sent_column: call.now})
        await flows.save_token(
            conn, call.context.new_id(), user.id, token_type, token_hash, phone, call.now
        )  # fmt: skip
    return "test-otp" if known is not None else str(call.context.new_id())


async def deliver_text(
    call: Call, conn: TypedConnection, user: User, phone: str, code: str, purpose: str
) -> None:
    """Hand a code for a phone number over: to the project's hook, else to the mailbox."""
    settings = call.context.settings
    told = {"user": user_json(user), "sms": {"otp": code, "phone": phone, "sms_type": purpose}}
    if await ask(call, conn, "send_sms", told) is not None:
        return
    if settings.sms_provider == "none":
        raise unprocessable("sms_send_failed", "Unable to get SMS provider")
    call.context.limits.count_text(call)
    text = fill_or(settings.sms_template, "Your code is {{ .Code }}", {"Code": code}, escapes=False)
    await hand_over(call, Message(to=phone, subject="", text=text))


def check_frequency(call: Call, sent_at: datetime | None) -> None:
    """Raise `AuthError` when the last mail of this kind went out a moment ago."""
    least = call.context.settings.email_max_frequency_seconds
    _refuse_haste(call.now, sent_at, least, "over_email_send_rate_limit")


async def begin_flow(
    call: Call, conn: TypedConnection, user: User, method: str, challenge: Challenge
) -> Flow:
    """Remember a PKCE challenge until the link is clicked and the code exchanged."""
    flow = Flow(
        id=call.context.new_id(),
        user_id=user.id,
        auth_code=str(call.context.new_id()),
        challenge_method=challenge.method,
        challenge=challenge.text,
        provider_type="email",
        provider_access_token="",
        provider_refresh_token="",
        authentication_method=method,
        created_at=call.now,
        code_issued_at=None,
        referrer="",
        linking_target_id=None,
    )
    await flows.delete_old_flows(conn, call.now - timedelta(days=1))
    await flows.insert_flow(conn, flow)
    return flow


def wanted_redirect(call: Call, also: str | None = None) -> str:
    """Where the link leads in the end: as the request asks, if that is allowed."""
    settings = call.context.settings
    headers = call.request.headers
    wanted = (also, headers.get(b"redirect_to"), call.query.get("redirect_to"), headers.get(b"referer"))
    return choose_redirect(wanted, settings.site_url, settings.additional_redirect_urls)


async def _send_code(
    call: Call, conn: TypedConnection, user: User, letter: Letter, address: str, *, is_pkce: bool
) -> None:
    redirect_to = wanted_redirect(call)
    code = make_link_code(call, letter, address, redirect_to, is_pkce=is_pkce)
    told = {"user": user_json(user), "email_data": _hook_data(call, user, letter, code, redirect_to)}
    if await ask(call, conn, "send_email", told) is None:
        await _mail(call, user, letter, address, code, redirect_to)
    await _remember(call, conn, user, letter, address, code)


async def _mail(call: Call, user: User, letter: Letter, address: str, code: Code, redirect_to: str) -> None:
    call.context.limits.count_mail(call)
    await hand_over(call, _compose(call, user, letter, address, code, redirect_to))


async def hand_over(call: Call, message: Message) -> None:
    """Give a message to the mailbox, and to the project's mail server if it has one. Raises `AuthError`."""
    try:
        await call.context.outbox.deliver(message)
    except OSError as error:
        call.context.report(f"mail to {message.to}: {error}")
        raise AuthError(500, "unexpected_failure", "Error sending email") from None


def _hook_data(call: Call, user: User, letter: Letter, code: Code, redirect_to: str) -> dict[str, str]:
    """What a project needs to write the mail by itself."""
    return {
        "token": code.text,
        "token_hash": code.token_hash,
        "redirect_to": redirect_to,
        "email_action_type": letter.link_type,
        "site_url": call.context.external_url,
        "token_new": "",
        "token_hash_new": "",
        "old_email": user.email if letter.link_type == "email_change" else "",
        "old_phone": "",
        "provider": "",
        "factor_type": "",
    }


async def _remember(
    call: Call, conn: TypedConnection, user: User, letter: Letter, address: str, code: Code
) -> None:
    """Only what was handed over is remembered as sent."""
    changes = {letter.token_column: code.token_hash, letter.sent_column: call.now}
    with naming("Database error updating user"):
        await users.update_user(conn, user.id, call.now, changes)
        await flows.save_token(
            conn, call.context.new_id(), user.id, letter.token_type, code.token_hash, address, call.now
        )  # fmt: skip


def _compose(call: Call, user: User, letter: Letter, address: str, code: Code, redirect_to: str) -> Message:
    settings = call.context.settings
    values: dict[str, object] = {
        "ConfirmationURL": code.link,
        "Token": code.text,
        "TokenHash": code.token_hash,
        "SiteURL": settings.site_url,
        "RedirectTo": redirect_to,
        "Email": user.email,
        "NewEmail": user.email_change,
        "SendingTo": address,
        "Phone": user.phone,
        "Data": user.user_metadata,
    }
    own = settings.mail_templates.get(letter.name)
    subject = fill_or(own.subject if own else "", letter.subject, values, escapes=False)
    content = fill_or(own.content if own else "", _default_content(letter), values, escapes=True)
    title = fill(letter.title, values, escapes=False)
    text = f"{title}\n\n{code.link}\n\nor enter the code: {code.text}\n"
    if not letter.action:
        text = f"{title}\n\nEnter the code: {code.text}\n"
    return Message(to=address, subject=subject, text=text, html=content)


def fill_or(own: str, default: str, values: dict[str, object], *, escapes: bool) -> str:
    """The project's own template filled in, or the default when there is none or it is broken."""
    if own:
        try:
            return fill(own, values, escapes=escapes)
        except TemplateFault:
            pass
    return fill(default, values, escapes=escapes)


def _default_content(letter: Letter) -> str:
    link = f'<p><a href="{{{{ .ConfirmationURL }}}}">{letter.action}</a></p>\n' if letter.action else ""
    return f"<h2>{letter.title}</h2>\n{link}<p>Your code: <b>{{{{ .Token }}}}</b></p>\n"


def _refuse_haste(now: datetime, sent_at: datetime | None, least_seconds: float, code: str) -> None:
    if sent_at is None:
        return
    missing = least_seconds - (now - sent_at).total_seconds()
    if missing > 0:
        wait = math.ceil(missing)
        raise too_soon(code, f"For security purposes, you can only request this after {wait} seconds.")


def host_of(url: str) -> str:
    """The host of a URL, for names that people see."""
    return urlsplit(url).hostname or ""
