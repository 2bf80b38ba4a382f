"""Pure: a mail that was kept, and the questions that a search may ask of it."""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

_TERM = re.compile(r'(-)?(?:(to|from|subject|body|message-id):)?("[^"]*"|\S+)')


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
    def snippet(self) -> str:
        """The beginning, on one line."""
        return " ".join(self.text.split())[:200]


def matches(mail: Mail, query: str) -> bool:
    """Whether a mail is what Mailpit's search language asks for: `to:ada@example.com subject:"reset"`.

    Words without a field are looked for everywhere; `-` in front means not.
    """
    places = {
        "to": mail.to,
        "from": f"{mail.sender} {mail.sender_name}",
        "subject": mail.subject,
        "body": f"{mail.text} {mail.html}",
        "message-id": mail.id,
    }
    everywhere = " ".join(places.values()).lower()
    for negation, field, word in _TERM.findall(query):
        place = places[field].lower() if field else everywhere
        if (word.strip('"').lower() in place) == bool(negation):
            return False
    return True
