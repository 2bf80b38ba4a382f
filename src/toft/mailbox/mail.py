"""Pure: a mail that was kept, and the questions that a search may ask of it."""

from __future__ import annotations

import re
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

import msgspec

_POLICY = SMTP.clone(refold_source="none")
_TERM = re.compile(r'(-)?(?:(to|from|subject|body|message-id|is):)?("[^"]*"|\S+)')


class Mail(msgspec.Struct, frozen=True):
    """A mail or text message. `to` is an address, or the digits of a phone number."""

    id: str
    to: str
    subject: str
    text: str
    html: str
    created_at: datetime
    sender: str = "admin@email.com"
    sender_name: str = "Admin"

    @property
    def size(self) -> int:
        return len(self.text.encode()) + len(self.html.encode())

    @property
    def headers(self) -> dict[str, list[str]]:
        """As a mail server would have them."""
        return {
            "Date": [format_datetime(self.created_at)],
            "From": [f"{self.sender_name} <{self.sender}>"],
            "To": [self.to],
            "Message-Id": [f"<{self.id}@toft>"],
            "Subject": [self.subject],
        }

    @property
    def raw(self) -> bytes:
        """The message as it would travel."""
        message = EmailMessage(policy=_POLICY)
        for name, values in self.headers.items():
            message[name] = " ".join(values[0].split())
        message.set_content(self.text)
        if self.html:
            message.add_alternative(self.html, subtype="html")
        return message.as_bytes()

    @property
    def snippet(self) -> str:
        """The beginning, on one line."""
        return " ".join(self.text.split())[:200]


def matches(mail: Mail, query: str, *, is_read: bool = False) -> bool:
    """Whether a mail is what Mailpit's search language asks for: `to:ada@example.com subject:"reset"`.

    Words without a field are looked for everywhere; `-` in front means not; `is:read` and `is:unread` too.
    """
    places = {
        "to": mail.to,
        "from": f"{mail.sender} {mail.sender_name}",
        "subject": mail.subject,
        "body": f"{mail.text} {mail.html}",
        "message-id": mail.id,
        "is": " read " if is_read else " unread ",
    }
    everywhere = " ".join(text for field, text in places.items() if field != "is").lower()
    for negation, field, word in _TERM.findall(query):
        place = places[field].lower() if field else everywhere
        wanted = word.strip('"').lower()
        if field == "is":
            wanted = f" {wanted} "
        if (wanted in place) == bool(negation):
            return False
    return True
