"""Mails that tell users what has happened to their account; only those that the project has switched on."""

from __future__ import annotations

from toft.auth.call import Call
from toft.auth.context import Message
from toft.auth.errors import AuthError
from toft.auth.hooks import ask, has_hook
from toft.auth.mailer import fill_or, hand_over
from toft.auth.model import User
from toft.auth.represent import user_json

#: kind → default subject and text; `[auth.email.notification.<kind>]` switches it on
_WORDS = {
    "password_changed": ("Your password has been changed", "The password of {{ .Email }} has been changed."),
    "email_changed": (
        "Your email address has been changed",
        "Your address has been changed from {{ .OldEmail }} to {{ .Email }}.",
    ),
    "phone_changed": (
        "Your phone number has been changed",
        "The phone number of {{ .Email }} has been changed from {{ .OldPhone }} to {{ .Phone }}.",
    ),
    "identity_linked": ("A new identity has been linked", "{{ .Provider }} has been linked to {{ .Email }}."),
    "identity_unlinked": (
        "An identity has been unlinked",
        "{{ .Provider }} has been unlinked from {{ .Email }}.",
    ),
    "mfa_factor_enrolled": (
        "A new second factor has been enrolled",
        "A factor ({{ .FactorType }}) has been enrolled for {{ .Email }}.",
    ),
    "mfa_factor_unenrolled": (
        "A second factor has been removed",
        "A factor ({{ .FactorType }}) of {{ .Email }} has been removed.",
    ),
}


def tell_user(call: Call, user: User, kind: str, *, to: str = "", **facts: str) -> None:
    """Send this notice when all is committed. to: another address than theirs. facts: `OldEmail`, ..."""
    address = to or user.email
    if address and kind in call.context.settings.mail_templates:
        call.later.append(lambda: _send(call, user, kind, address, facts))


async def _send(call: Call, user: User, kind: str, address: str, facts: dict[str, str]) -> None:
    """What has happened stays so, whether or not its notice arrives."""
    try:
        await _word_and_send(call, user, kind, address, facts)
    except AuthError as error:
        call.report(error)


async def _word_and_send(call: Call, user: User, kind: str, address: str, facts: dict[str, str]) -> None:
    settings = call.context.settings
    if has_hook(call, "send_email"):
        data = {
            "email_action_type": f"{kind}_notification", "site_url": call.context.external_url,
            "token": "", "token_hash": "", "token_new": "", "token_hash_new": "", "redirect_to": "",
            "old_email": facts.get("OldEmail", ""), "old_phone": facts.get("OldPhone", ""),
            "provider": facts.get("Provider", ""), "factor_type": facts.get("FactorType", ""),
        }  # fmt: skip
        async with call.context.pool.lend() as conn:
            await ask(call, conn, "send_email", {"user": user_json(user), "email_data": data})
        return
    values: dict[str, object] = {
        "SiteURL": settings.site_url,
        "Email": user.email,
        "Phone": user.phone,
        "SendingTo": address,
        "Data": user.user_metadata,
        **facts,
    }
    subject, text = _WORDS[kind]
    own = settings.mail_templates[kind]
    await hand_over(
        call,
        Message(
            to=address,
            subject=fill_or(own.subject, subject, values, escapes=False),
            text=fill_or("", text, values, escapes=False),
            html=fill_or(own.content, f"<p>{text}</p>\n", values, escapes=True),
        ),
    )
