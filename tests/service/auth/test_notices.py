"""Notices to users, and mails that go on to a real mail server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from email import message_from_bytes
from email.message import Message as Mail
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword

from tests.kit.fix_auth import AuthBackend
from tests.kit.fix_postgres import find_free_port
from toft.auth.context import Message
from toft.mailbox.box import Box
from toft.mailbox.relay import Relay, RelayFailed
from toft.protocol.worker import AuthMailTemplate, AuthProvider, AuthSmtp
from toft.world import SystemClock, SystemEntropy

KINDS = (
    "password_changed", "email_changed", "phone_changed", "identity_linked", "identity_unlinked",
    "mfa_factor_enrolled", "mfa_factor_unenrolled",
)  # fmt: skip


async def test_notices(auth_backend: AuthBackend):
    """Each is sent when it is switched on, in the project's words where it has some, and not otherwise."""
    session = await auth_backend.sign_up()
    token = session["access_token"]
    await auth_backend.call("PUT /user", {"password": "a-second-long-one"}, token=token)
    assert auth_backend.outbox.messages == []
    templates = dict.fromkeys(KINDS, AuthMailTemplate())
    templates["phone_changed"] = AuthMailTemplate("Call me", "<b>{{ .OldPhone }} {{ .Phone }}</b>")
    auth_backend.configure(
        mail_templates=templates, sms_enable_signup=True, email_double_confirm_changes=False,
        external={"github": AuthProvider(client_id="x")}, enable_manual_linking=True,
    )  # fmt: skip
    await auth_backend.call("PUT /user", {"password": "a-third-long-one"}, token=token)
    assert auth_backend.outbox.last("ada@example.com").subject == "Your password has been changed"
    await auth_backend.call("PUT /user", {"phone": "+15550100"}, token=token)
    told = auth_backend.outbox.last("ada@example.com")
    assert (told.subject, told.html) == ("Call me", "<b> 15550100</b>")
    await auth_backend.call("PUT /user", {"email": "new@example.com"}, token=token)
    proof = {"type": "email_change", "email": "new@example.com"}
    proof["token"] = auth_backend.outbox.last_code("new@example.com")
    assert (await auth_backend.call("POST /verify", proof)).status_code == 200
    assert "from ada@example.com to new@example.com" in auth_backend.outbox.last("ada@example.com").text
    count = len(auth_backend.outbox.messages)
    refused = await auth_backend.call("PUT /user", {"password": "a-third-long-one"}, token=token)
    assert refused.status_code == 422
    assert len(auth_backend.outbox.messages) == count


class Server:
    """A mail server that we did not write: keeps what it is given."""

    def __init__(self) -> None:
        self.mails: list[tuple[Envelope, Mail]] = []
        self.logins: list[LoginPassword] = []
        self.refuses = False

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:
        if self.refuses:
            return "554 not from you"
        assert isinstance(envelope.content, bytes)
        self.mails.append((envelope, message_from_bytes(envelope.content)))
        return "250 OK"

    def authenticate(
        self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any
    ) -> AuthResult:
        self.logins.append(data)
        return AuthResult(success=data.password == b"right")


@pytest.fixture
async def mail_server() -> AsyncIterator[tuple[Server, AuthSmtp]]:
    """A real mail server on a port of its own."""
    server = Server()
    controller = Controller(
        server,
        hostname="127.0.0.1",
        port=find_free_port(),
        authenticator=server.authenticate,
        auth_require_tls=False,
    )
    controller.start()
    yield server, AuthSmtp("127.0.0.1", controller.port, "me", "right", "shop@example.com", "The shop")
    controller.stop()


async def test_relay(auth_backend: AuthBackend, mail_server: tuple[Server, AuthSmtp]):
    """Mails go to the server and stay in the box; text messages only stay; a refusal undoes the sign-up."""
    server, smtp = mail_server
    box = Box(SystemClock(), SystemEntropy())
    relay = Relay(box, smtp)
    await relay.deliver(Message("ada@example.com", "Grüße\nBcc: eve@example.com", "text", "<p>html</p>"))
    [(envelope, mail)] = server.mails
    assert (envelope.mail_from, envelope.rcpt_tos) == ("shop@example.com", ["ada@example.com"])
    assert (mail["From"], mail["Bcc"]) == ("The shop <shop@example.com>", None)
    assert server.logins[0].login == b"me"
    await relay.deliver(Message("15550100", "", "Your code is 123456"))
    assert (len(server.mails), len(box.list())) == (1, 2)

    auth_backend.outbox = relay  # pyright: ignore[reportAttributeAccessIssue]
    auth_backend.configure(email_enable_confirmations=True)
    server.refuses = True
    body = {"email": "bob@example.com", "password": "a-long-enough-one"}
    answer = await auth_backend.call("POST /signup", body)
    assert (answer.status_code, answer.json()["message"]) == (500, "Error sending email")
    assert any("554" in report for report in auth_backend.reports)
    assert await (await auth_backend.sql()).query("select from auth.users") == []
    server.refuses = False
    assert (await auth_backend.call("POST /signup", body)).status_code == 200


async def test_a_mail_server_that_is_away_or_refuses_the_password(mail_server: tuple[Server, AuthSmtp]):
    """Its address and answer are told, the password is not."""
    box = Box(SystemClock(), SystemEntropy())
    message = Message("ada@example.com", "s", "t")
    for smtp in (
        AuthSmtp("127.0.0.1", 1, "me", "secret-word"),
        AuthSmtp("127.0.0.1", mail_server[1].port, "me", "secret-word"),
    ):
        with pytest.raises(RelayFailed) as told:
            await Relay(box, smtp).deliver(message)
        assert f"127.0.0.1:{smtp.port}" in str(told.value)
        assert "secret-word" not in str(told.value)
    assert len(box.list()) == 2
