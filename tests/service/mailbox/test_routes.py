"""The box over HTTP, as end-to-end suites poll it."""

from __future__ import annotations

import asyncio
import email
import email.policy
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest

from toft.http.message import Request, Response
from toft.http.server import listen
from toft.mailbox.box import Box
from toft.mailbox.routes import MailboxService
from toft.world import SystemClock, SystemEntropy


class Sent(msgspec.Struct, frozen=True):
    to: str
    subject: str = "Hello"
    text: str = "Your code is 123456"
    html: str = "<a href='http://x.example/?a=1&amp;b=2'>go</a>"


@pytest.fixture
async def served() -> AsyncIterator[tuple[Box, httpx.AsyncClient]]:
    box = Box(SystemClock(), SystemEntropy())
    service = MailboxService(box, "http://127.0.0.1:1")

    async def handle(request: Request) -> Response:
        return await service.handle(request, request.raw_path.removeprefix("/mail"))

    listener = await listen(handle)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{listener.port}/mail/api/v1/") as client:
        yield box, client
    await listener.close()


async def test_mailpit(served: tuple[Box, httpx.AsyncClient]):
    """List, read, search and delete; scripts of other origins may not read."""
    box, http = served
    for name in ("ada", "bob"):
        await box.deliver(Sent(f"{name}@example.com"))
    listed = await http.get("messages", params={"limit": 1})
    body = listed.json()
    assert (body["total"], body["count"], body["messages_count"]) == (2, 1, 2)
    [summary] = body["messages"]
    assert summary["To"] == [{"Name": "", "Address": "bob@example.com"}]
    assert listed.headers["access-control-allow-origin"] == "http://127.0.0.1:1"
    found = (await http.get("search", params={"query": "to:ada@example.com"})).json()["messages"]
    whole = (await http.get(f"message/{found[0]['ID']}")).json()
    assert whole["Text"] == "Your code is 123456"
    assert whole["Codes"] == ["123456"]
    assert whole["Links"] == ["http://x.example/?a=1&b=2"]
    assert (await http.get("message/latest")).json()["To"][0]["Address"] == "bob@example.com"
    assert (await http.get("message/nothing")).status_code == 404
    await http.request("DELETE", "messages", json={"IDs": [found[0]["ID"]]})
    assert len(box.list()) == 1
    assert (await http.request("DELETE", "messages", content=b"{")).status_code == 400
    await http.delete("messages")
    assert box.list() == []
    assert (await http.get("nothing")).status_code == 404


async def test_forms_of_a_mail(served: tuple[Box, httpx.AsyncClient]):
    """Headers, the raw message, text and markup; opening it marks it as read, which can be searched."""
    box, http = served
    await box.deliver(Sent("ada@example.com", subject="Grüße\nBcc: eve@example.com"))
    [mail] = box.list()
    assert (await http.get(f"message/{mail.id}/headers")).json()["To"] == ["ada@example.com"]
    raw = email.message_from_bytes(
        (await http.get(f"message/{mail.id}/raw")).content, policy=email.policy.SMTP
    )
    assert (raw["to"], raw["bcc"]) == ("ada@example.com", None)
    assert raw.get_body(("plain",)).get_content().strip() == mail.text
    assert raw.get_body(("html",)).get_content().strip() == mail.html
    shown = await http.get("../../view/latest.html")
    assert (shown.text, (await http.get("../../view/latest.txt")).text) == (mail.html, mail.text)
    assert "sandbox" in shown.headers["content-security-policy"]
    assert (await http.get("messages")).json()["unread"] == 1
    await http.get(f"message/{mail.id}")
    assert (await http.get("messages")).json()["messages"][0]["Read"] is True
    assert (await http.get("search", params={"query": "is:unread"})).json()["messages"] == []
    await http.put("messages", json={"IDs": [mail.id], "Read": False})
    assert (await http.get("info")).json() == {"Version": "toft", "Messages": 1, "Unread": 1}


async def test_inbucket(served: tuple[Box, httpx.AsyncClient]):
    """The older suites ask by the part in front of the @."""
    box, http = served
    await box.deliver(Sent("ada@example.com"))
    [listed] = (await http.get("mailbox/ada")).json()
    whole = (await http.get(f"mailbox/ada/{listed['id']}")).json()
    assert whole["body"]["text"] == "Your code is 123456"
    await http.delete("mailbox/ada")
    assert (await http.get("mailbox/ada")).json() == []


async def test_wait(served: tuple[Box, httpx.AsyncClient]):
    """One request that ends when the mail comes."""
    box, http = served
    waiting = asyncio.ensure_future(http.get("wait", params={"query": "to:ada", "seconds": 5}))
    await asyncio.sleep(0.05)
    await box.deliver(Sent("ada@example.com"))
    assert (await waiting).json()["Codes"] == ["123456"]
    assert (await http.get("wait", params={"query": "to:bob", "seconds": 0})).status_code == 404
    assert (await http.get("wait", params={"seconds": "x"})).status_code == 400
