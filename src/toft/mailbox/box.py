"""One backend's box: newest first, bounded, in memory. Whoever waits for a mail is woken when it comes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from toft.mailbox.mail import Mail, matches
from toft.tokens.keys import encode_bytes
from toft.world import Clock, Entropy

MOST_MAILS = 1000


class Sent(Protocol):
    """What a service hands over to be sent."""

    @property
    def to(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def html(self) -> str: ...


class Box:
    """Keeps the last thousand mails of a backend."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy
        self._mails: deque[Mail] = deque(maxlen=MOST_MAILS)
        self._read: set[str] = set()
        self._came = asyncio.Condition()

    async def deliver(self, message: Sent) -> None:
        """Keep a message."""
        mail = Mail(
            id=encode_bytes(self._entropy.bytes(16)),
            to=message.to,
            subject=message.subject,
            text=message.text,
            html=message.html,
            created_at=self._clock.now(),
        )
        async with self._came:
            self._mails.appendleft(mail)
            self._came.notify_all()

    def list(self, query: str = "") -> list[Mail]:
        """All mails that match, newest first."""
        return [mail for mail in self._mails if matches(mail, query, is_read=mail.id in self._read)]

    def is_read(self, mail: Mail) -> bool:
        """Whether somebody has opened it."""
        return mail.id in self._read

    def mark(self, ids: Iterable[str], *, is_read: bool) -> None:
        """Say of mails whether they are read; ids of others do nothing."""
        known = {mail.id for mail in self._mails}.intersection(ids)
        self._read = self._read | known if is_read else self._read - known

    def find(self, mail_id: str) -> Mail | None:
        """A mail by its id; `latest` is the newest."""
        if mail_id == "latest":
            return self._mails[0] if self._mails else None
        return next((mail for mail in self._mails if mail.id == mail_id), None)

    def delete(self, ids: Iterable[str]) -> None:
        """Forget these."""
        gone = set(ids)
        kept = [mail for mail in self._mails if mail.id not in gone]
        self._mails.clear()
        self._mails.extend(kept)
        self._read -= gone

    def clear(self) -> None:
        """Forget all."""
        self._mails.clear()
        self._read.clear()

    async def wait(self, query: str, after: str, seconds: float) -> Mail | None:
        """The newest mail that matches and came after the one with the id `after`; None when none comes.

        after: empty for any mail, those that are there already included.
        """
        try:
            async with asyncio.timeout(seconds), self._came:
                while True:
                    for mail in self._mails:
                        if mail.id == after:
                            break
                        if matches(mail, query):
                            return mail
                    await self._came.wait()
        except TimeoutError:
            return None
