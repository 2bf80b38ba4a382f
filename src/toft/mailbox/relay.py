"""Mails that go on to a real mail server, where a project asks for it; the box keeps them all the same."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from email.message import EmailMessage
from typing import Final, Protocol

from toft.mailbox.box import Box, Sent

_PATIENCE_SECONDS: Final = 8.0
_TLS_PORT: Final = 465


class MailServer(Protocol):
    """Where a relay hands mails over; `protocol.worker.AuthSmtp` is one."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def user(self) -> str: ...
    @property
    def password(self) -> str: ...
    @property
    def admin_email(self) -> str: ...
    @property
    def sender_name(self) -> str: ...


class RelayFailed(OSError):
    """The mail server did not take a mail. Its text names the reason, never the password."""


class Relay:
    """A box, and a mail server behind it."""

    def __init__(self, box: Box, server: MailServer) -> None:
        self._box = box
        self._server = server

    async def deliver(self, message: Sent) -> None:
        """Keep a message, and send it if it is a mail. Raises `RelayFailed`."""
        await self._box.deliver(message)
        if "@" in message.to:
            await asyncio.to_thread(self._send, message)

    def _send(self, message: Sent) -> None:
        server = self._server
        mail = EmailMessage()
        mail["From"] = (
            f"{server.sender_name} <{server.admin_email}>" if server.sender_name else server.admin_email
        )
        mail["To"] = message.to
        mail["Subject"] = " ".join(message.subject.split())
        mail.set_content(message.text)
        if message.html:
            mail.add_alternative(message.html, subtype="html")
        try:
            with self._dial() as session:
                if server.user:
                    session.login(server.user, server.password)
                session.send_message(mail)
        except smtplib.SMTPResponseException as error:
            reason = error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else ""
            raise RelayFailed(f"{server.host}:{server.port} answered {error.smtp_code} {reason}") from None
        except (OSError, smtplib.SMTPException) as error:
            raise RelayFailed(f"{server.host}:{server.port}: {error or type(error).__name__}") from None

    def _dial(self) -> smtplib.SMTP:
        """Encrypted where the server can: from the start on its own port, else by STARTTLS."""
        server = self._server
        context = ssl.create_default_context()
        if server.port == _TLS_PORT:
            return smtplib.SMTP_SSL(server.host, server.port, timeout=_PATIENCE_SECONDS, context=context)
        session = smtplib.SMTP(server.host, server.port, timeout=_PATIENCE_SECONDS)
        session.ehlo()
        if session.has_extn("starttls"):
            session.starttls(context=context)
            session.ehlo()
        return session
