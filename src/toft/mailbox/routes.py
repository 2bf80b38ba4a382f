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
                return self._say(self._page("", query))
            case "search":
                return self._say(self._page(query.get("query", ""), query))
            case "read" | "headers" | "raw" | "text" | "html":
                mail = self._box.find(parts[0])
                return (
                    self._show(answer, mail) if mail is not None else self._say({"Error": "Not found"}, 404)
                )
            case "wait":
                return await self._wait(query)
            case "mark" | "delete":
                return await self._change(request, answer)
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
                count, unread = len(self._box.list()), len(self._box.list("is:unread"))
                return self._say({"Version": "toft", "Messages": count, "Unread": unread})

    def _show(self, form: str, mail: Mail) -> Response:
        """A mail in one of its forms. To open it is to have read it, as with Mailpit."""
        if form == "headers":
            return self._say(mail.headers)
        if form == "raw":
            return self._write(b"text/plain; charset=utf-8", mail.raw)
        if form == "text":
            return self._write(b"text/plain; charset=utf-8", mail.text.encode())
        if form == "html":
            # a mail may hold whatever a user wrote about themselves: it is shown, never run
            shown = self._write(b"text/html; charset=utf-8", mail.html.encode())
            shown.headers.append((b"content-security-policy", b"sandbox; default-src 'none'; img-src data:"))
            return shown
        self._box.mark([mail.id], is_read=True)
        return self._say(_whole(mail))

    def _page(self, wanted: str, query: dict[str, str]) -> dict[str, Any]:
        found = self._box.list(wanted)
        start, count = _number(query.get("start"), 0), _number(query.get("limit"), _USUAL_COUNT)
        shown = found[start : start + count]
        return {
            "total": len(self._box.list()),
            "unread": len(self._box.list("is:unread")),
            "count": len(shown),
            "messages_count": len(found),
            "messages_unread": sum(not self._box.is_read(mail) for mail in found),
            "start": start,
            "tags": [],
            "messages": [_summary(mail, is_read=self._box.is_read(mail)) for mail in shown],
        }

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

    async def _change(self, request: Request, what: str) -> Response:
        """Delete the mails that the body names, or all; or say whether they are read."""
        try:
            raw = await request.body.read(_LARGEST_BODY)
        except BodyTooLarge:
            return self._say({"Error": "Request body too large"}, 413)
        try:
            body: object = msgspec.json.decode(raw) if raw.strip() else {}
        except (msgspec.DecodeError, RecursionError):
            return self._say({"Error": "Invalid JSON"}, 400)
        members = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
        named: object = members.get("IDs")
        ids = [str(one) for one in cast("list[object]", named)] if isinstance(named, list) else []
        if what == "mark":
            wanted = ids or [mail.id for mail in self._box.list()]
            self._box.mark(wanted, is_read=members.get("Read") is True)
        elif ids:
            self._box.delete(ids)
        else:
            self._box.clear()
        return self._say("ok")

    def _write(self, kind: bytes, raw: bytes, status: int = 200) -> Response:
        return Response(status, [(b"content-type", kind), *self._headers[1:]], raw)

    def _say(self, body: object, status: int = 200) -> Response:
        if isinstance(body, str):
            return self._write(b"text/plain", body.encode(), status)
        return Response(status, self._headers, msgspec.json.encode(body))


_ROUTES: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (method, re.compile(pattern), answer)
    for method, pattern, answer in (
        ("GET", "/api/v1/messages", "list"),
        ("PUT", "/api/v1/messages", "mark"),
        ("DELETE", "/api/v1/messages", "delete"),
        ("GET", "/api/v1/search", "search"),
        ("DELETE", "/api/v1/search", "delete search"),
        ("GET", "/api/v1/message/([^/]+)", "read"),
        ("GET", "/api/v1/message/([^/]+)/headers", "headers"),
        ("GET", "/api/v1/message/([^/]+)/raw", "raw"),
        ("GET", "/view/([^/]+)[.]txt", "text"),
        ("GET", "/view/([^/]+)[.]html", "html"),
        ("GET", "/api/v1/wait", "wait"),
        ("GET", "/api/v1/info", "info"),
        ("GET", "/api/v1/mailbox/([^/]+)", "inbucket list"),
        ("DELETE", "/api/v1/mailbox/([^/]+)", "inbucket clear"),
        ("GET", "/api/v1/mailbox/([^/]+)/([^/]+)", "inbucket read"),
    )
)


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else default


def _summary(mail: Mail, *, is_read: bool = False) -> dict[str, Any]:
    return {
        "ID": mail.id,
        "MessageID": f"{mail.id}@toft",
        "Read": is_read,
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
