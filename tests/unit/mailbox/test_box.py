"""What is kept, found, waited for and forgotten; and what is read out of a mail."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from toft.mailbox.box import MOST_MAILS, Box
from toft.mailbox.links import find_codes, find_links
from toft.mailbox.mail import Mail, matches
from toft.world import SystemClock, SystemEntropy


class Sent(msgspec.Struct, frozen=True):
    to: str
    subject: str = "Hello"
    text: str = "Your code is 123456"
    html: str = ""


def make_box() -> Box:
    return Box(SystemClock(), SystemEntropy())


async def test_newest_first_and_bounded():
    """The oldest go when there are too many."""
    box = make_box()
    for number in range(MOST_MAILS + 5):
        await box.deliver(Sent(f"u{number}@example.com"))
    assert len(box.list()) == MOST_MAILS
    assert box.list()[0].to == f"u{MOST_MAILS + 4}@example.com"
    assert box.find("latest") == box.list()[0]
    assert box.find("nothing") is None


async def test_waiting_ends_with_the_mail_that_was_meant():
    """Others do not wake it for good; one that was there before may be skipped; nobody waits for ever."""
    box = make_box()
    await box.deliver(Sent("ada@example.com", "Old"))
    old = box.list()[0]
    assert await box.wait("to:ada", "", 5) == old
    waiting = asyncio.ensure_future(box.wait("to:ada", old.id, 5))
    await asyncio.sleep(0)
    await box.deliver(Sent("bob@example.com"))
    await box.deliver(Sent("ada@example.com", "New"))
    found = await waiting
    assert found is not None
    assert found.subject == "New"
    assert await box.wait("to:nobody", "", 0.01) is None


async def test_forgetting():
    """Some, or all."""
    box = make_box()
    for name in ("a", "b", "c"):
        await box.deliver(Sent(f"{name}@example.com"))
    box.delete([box.list("to:b")[0].id])
    assert [mail.to for mail in box.list()] == ["c@example.com", "a@example.com"]
    box.clear()
    assert box.list() == []


MAIL = Mail("1", "ada@example.com", "Reset your password", "Code: 123456", "<b>x</b>", datetime.now(UTC))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", True), ("to:ada@example.com", True), ("to:ADA", True), ("to:bob", False),
        ('subject:"reset your"', True),
        ("subject:reset to:ada", True), ("-to:ada", False), ("-to:bob 123456", True), ("nothing", False),
        ("from:admin", True), ("body:<b>", True),
    ],
)  # fmt: skip
def test_search(query, found):
    """All words have to be there, each in its place."""
    assert matches(MAIL, query) is found


def test_codes_and_links():
    """Digits inside addresses are no codes; markup's addresses are unescaped."""
    assert find_codes("code: 123456, not 12345 or v1.234567 or #1234567890123") == ["123456"]
    assert find_codes("http://x.example/654321 and 111111.") == []
    assert find_codes("or enter 111111 now") == ["111111"]
    assert find_links("see http://x.example/a.", "<a href='http://x.example/a'>") == ["http://x.example/a"]
