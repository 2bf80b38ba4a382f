"""The box over HTTP: Mailpit's API, Inbucket's older one, and `wait` for the next mail.

Who reads a mailbox can sign in as its owners, so scripts of other origins are kept out: the answers name the
box's own origin as the only one that may read them.
"""

from __future__ import annotations

import re
from typing import Any, cast
from urllib.parse import parse_qsl, unquote

import msgspec

from toft.http.message import BodyTooLarge, HeaderList, Request, Response
from toft.mailbox.box import Box
from toft.mailbox.links import find_codes, find_links
from toft.mailbox.mail import Mail

_LARGEST_BODY = 1024 * 1024
_LONGEST_WAIT = 60.0
_USUAL_COUNT = 50


class MailboxService:
    """One backend's mailbox. `origin`: where it is served, as a browser names it."""

    def __init__(self, box: Box, origin: str) -> None:
        self._box = box
        self._headers: HeaderList = [
            (b"content-type", b"application/json"),
            (b"access-control-allow-origin", origin.encode()),
            (b"cache-control", b"no-store"),
        ]

    async def handle(self, request: Request, path: str) -> Response:
        """Answer a request. `path` is what follows `/mail`."""
        query = dict(parse_qsl(request.query, keep_blank_values=True))
        for method, pattern, answer in _ROUTES:
            found = pattern.fullmatch(path.rstrip("/"))
            if found is not None and method == request.method:
                return await self._answer(answer, request, query, [unquote(part) for part in found.groups()])
        return self._say({"Error": "Not found"}, 404)

    async def _answer(
        self, answer: str, request: Request, query: dict[str, str], parts: list[str]
    ) -> Response:
        match answer:
            case "list":
                return self._say(_page(self._box.list(), len(self._box.list()), query))
            case "search":
                found = self._box.list(query.get("query", ""))
                return self._say(_page(found, len(self._box.list()), query))
            case "read":
                mail = self._box.find(parts[0])
                return self._say(_whole(mail)) if mail is not None else self._say({"Error": "Not found"}, 404)
            case "wait":
                return await self._wait(query)
            case "delete":
                return await self._delete(request)
            case "delete search":
                self._box.delete(mail.id for mail in self._box.list(query.get("query", "")))
                return self._say("ok")
            case "inbucket list":
                return self._say([_inbucket(mail) for mail in self._of_name(parts[0])])
            case "inbucket read":
                mail = self._box.find(parts[1])
                return self._say(_inbucket_whole(mail)) if mail is not None else self._say({}, 404)
            case "inbucket clear":
                self._box.delete(mail.id for mail in self._of_name(parts[0]))
                return self._say("OK")
            case _:
                return self._say({"Version": "toft", "Messages": len(self._box.list())})

    def _of_name(self, name: str) -> list[Mail]:
        """Mails to an address, or to its part in front of the @."""
        return [
            mail
            for mail in reversed(self._box.list())
            if name.lower() in (mail.to, mail.to.partition("@")[0])
        ]

    async def _wait(self, query: dict[str, str]) -> Response:
        try:
            seconds = min(float(query.get("seconds", "10")), _LONGEST_WAIT)
        except ValueError:
            return self._say({"Error": "seconds must be a number"}, 400)
        mail = await self._box.wait(query.get("query", ""), query.get("after", ""), max(seconds, 0))
        if mail is None:
            return self._say({"Error": "No such mail came in time"}, 404)
        return self._say(_whole(mail))

    async def _delete(self, request: Request) -> Response:
        try:
            raw = await request.body.read(_LARGEST_BODY)
        except BodyTooLarge:
            return self._say({"Error": "Request body too large"}, 413)
        try:
            body: object = msgspec.json.decode(raw) if raw.strip() else {}
        except msgspec.DecodeError:
            return self._say({"Error": "Invalid JSON"}, 400)
        ids = cast("dict[str, Any]", body).get("IDs") if isinstance(body, dict) else None
        if isinstance(ids, list) and ids:
            self._box.delete(str(one) for one in cast("list[object]", ids))
        else:
            self._box.clear()
        return self._say("ok")

    def _say(self, body: object, status: int = 200) -> Response:
        if isinstance(body, str):
            return Response(status, [(b"content-type", b"text/plain"), *self._headers[1:]], body.encode())
        return Response(status, self._headers, msgspec.json.encode(body))


_ROUTES: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (method, re.compile(pattern), answer)
    for method, pattern, answer in (
        ("GET", "/api/v1/messages", "list"),
        ("DELETE", "/api/v1/messages", "delete"),
        ("GET", "/api/v1/search", "search"),
        ("DELETE", "/api/v1/search", "delete search"),
        ("GET", "/api/v1/message/([^/]+)", "read"),
        ("GET", "/api/v1/wait", "wait"),
        ("GET", "/api/v1/info", "info"),
        ("GET", "/api/v1/mailbox/([^/]+)", "inbucket list"),
        ("DELETE", "/api/v1/mailbox/([^/]+)", "inbucket clear"),
        ("GET", "/api/v1/mailbox/([^/]+)/([^/]+)", "inbucket read"),
    )
)


def _page(mails: list[Mail], total: int, query: dict[str, str]) -> dict[str, Any]:
    start, count = _number(query.get("start"), 0), _number(query.get("limit"), _USUAL_COUNT)
    shown = mails[start : start + count]
    return {
        "total": total,
        "unread": total,
        "count": len(shown),
        "messages_count": len(mails),
        "messages_unread": len(mails),
        "start": start,
        "tags": [],
        "messages": [_summary(mail) for mail in shown],
    }


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else default


def _summary(mail: Mail) -> dict[str, Any]:
    return {
        "ID": mail.id,
        "MessageID": f"{mail.id}@toft",
        "Read": False,
        "From": {"Name": mail.sender_name, "Address": mail.sender},
        "To": [{"Name": "", "Address": mail.to}],
        "Cc": [],
        "Bcc": [],
        "ReplyTo": [],
        "Subject": mail.subject,
        "Created": mail.created_at.isoformat(),
        "Tags": [],
        "Size": mail.size,
        "Attachments": 0,
        "Snippet": mail.snippet,
    }


def _whole(mail: Mail) -> dict[str, Any]:
    """A mail as Mailpit tells it, with the codes and links in it, which are ours."""
    summary = _summary(mail)
    for name in ("Read", "Created", "Attachments", "Snippet"):
        del summary[name]
    return {
        **summary,
        "ReturnPath": mail.sender,
        "Date": mail.created_at.isoformat(),
        "Text": mail.text,
        "HTML": mail.html,
        "Inline": [],
        "Attachments": [],
        "Codes": find_codes(mail.text),
        "Links": find_links(mail.text, mail.html),
    }


def _inbucket(mail: Mail) -> dict[str, Any]:
    return {
        "mailbox": mail.to.partition("@")[0],
        "id": mail.id,
        "from": f"{mail.sender_name} <{mail.sender}>",
        "to": [f"<{mail.to}>"],
        "subject": mail.subject,
        "date": mail.created_at.isoformat(),
        "size": mail.size,
        "seen": False,
    }


def _inbucket_whole(mail: Mail) -> dict[str, Any]:
    return {**_inbucket(mail), "body": {"text": mail.text, "html": mail.html}}
