"""A backend's mailbox from outside: what Auth would have sent, listed, read and waited for."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote, urlencode

from toft.client.services import PATIENCE_SECONDS, Api
from toft.errors.service import MailNotCome, MailNotFound, ServiceRefused

_SERVICE = "the mailbox"
#: so long the mailbox lets one request wait
_ONE_WAIT_SECONDS = 20.0
_PER_PAGE = 500


class Mail:
    """A mail that came. code: the first code in it, link: the first link; empty when it has none."""

    def __init__(self, members: dict[str, Any]) -> None:
        #: as the mailbox's API tells it, in Mailpit's shape
        self.members = members
        self.id: str = members["ID"]
        self.to: str = members["To"][0]["Address"]
        self.subject: str = members["Subject"]
        self.text: str = members["Text"]
        self.html: str = members["HTML"]
        self.codes: list[str] = members["Codes"]
        self.links: list[str] = members["Links"]

    @property
    def code(self) -> str:
        return self.codes[0] if self.codes else ""

    @property
    def link(self) -> str:
        return self.links[0] if self.links else ""

    def __repr__(self) -> str:
        return f"Mail(to={self.to!r}, subject={self.subject!r})"


class Mailbox:
    """One backend's mailbox at its address, which ends in `/mail`."""

    def __init__(self, url: str) -> None:
        self._api = Api(url)
        #: address → id of the mail that was returned last
        self._seen: dict[str, str] = {}

    def list(self, query: str = "") -> list[dict[str, Any]]:
        """Summaries, newest first. query: in Mailpit's search language, `to:ada subject:reset`."""
        found: list[dict[str, Any]] = []
        while True:
            paging = {"query": query, "start": len(found), "limit": _PER_PAGE}
            more = self._api.call(_SERVICE, "GET", f"/api/v1/search?{urlencode(paging)}")["messages"]
            found += more
            if len(more) < _PER_PAGE:
                return found

    def read(self, mail_id: str) -> Mail:
        """A mail by its id; `latest` is the newest. Raises `MailNotFound`."""
        answer = self._api.ask("GET", f"/api/v1/message/{quote(mail_id, safe='')}")
        if answer.status == 404:
            raise MailNotFound(mail=mail_id)
        return Mail(answer.body)

    def wait(self, to: str, *, timeout: float = 10, subject: str = "", after: str = "") -> Mail:
        """The newest mail to this address that was not returned before; waits for it to come.

        to: an e-mail address or the digits of a phone number. timeout: in seconds. subject: words that the
        subject has. after: the id of a mail; it and those before it do not count. Raises `MailNotCome`.
        """
        to = to.lower().removeprefix("+")
        query = f'to:"{to}"' + (f' subject:"{subject}"' if subject else "")
        after = after or self._seen.get(to, "")
        ends_at = time.monotonic() + timeout
        while True:
            left = ends_at - time.monotonic()
            seconds = max(min(left, _ONE_WAIT_SECONDS), 0)
            asked = urlencode({"query": query, "after": after, "seconds": f"{seconds:.3f}"})
            answer = self._api.ask(
                "GET", f"/api/v1/wait?{asked}", patience_seconds=seconds + PATIENCE_SECONDS
            )
            if answer.status == 200:
                mail = Mail(answer.body)
                self._seen[to] = mail.id
                return mail
            if answer.status != 404:
                raise ServiceRefused(service=_SERVICE, cause=answer.words)
            if left <= _ONE_WAIT_SECONDS:
                raise MailNotCome(to=to, seconds=f"{timeout:g}")

    def clear(self) -> None:
        """Forget all mails."""
        self._api.call(_SERVICE, "DELETE", "/api/v1/messages")
