"""Mail that a backend's Auth has sent, for tests: wait for the next one, take its code or its link.

    from toft.mail import Mailbox

    mailbox = Mailbox()                                   # under `toft run`; else Mailbox(url)
    supabase.auth.sign_in_with_otp({"email": "ada@example.com"})
    mail = mailbox.wait("ada@example.com")
    mail.code, mail.link

Failures are `toft.errors.service.MailNotCome` and its neighbours.
"""

from __future__ import annotations

from toft import settings
from toft.client import mailbox as _mailbox
from toft.errors.service import MailUrlMissing

__all__ = ["Mail", "Mailbox"]

Mail = _mailbox.Mail


class Mailbox(_mailbox.Mailbox):
    """The mailbox at `url`; without one, that of the lease whose command this is (`TOFT_MAIL_URL`)."""

    def __init__(self, url: str | None = None) -> None:
        url = url or settings.environment().get("TOFT_MAIL_URL")
        if not url:
            raise MailUrlMissing
        super().__init__(url)
