"""Passwords are hashed beside the event loop: whoever does not sign in waits for nobody who does."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.kit.fix_auth import AuthBackend
from toft.auth import passwords

GRANT = {"email": "ada@example.com", "password": "a-long-enough-one"}


async def test_hashing_never_blocks_the_loop(auth_backend: AuthBackend, monkeypatch: pytest.MonkeyPatch):
    """While fifty sign-ins are stuck in their hashing, reads and refreshes are answered; then all get in."""
    assert auth_backend.http is not None
    auth_backend.http.timeout = 60
    session = await auth_backend.sign_up()
    may_go_on, has_begun = threading.Event(), threading.Event()
    real = passwords._matches  # pyright: ignore[reportPrivateUsage]

    def stuck(password: str, stored: str) -> bool:
        has_begun.set()
        assert may_go_on.wait(30)
        return real(password, stored)

    monkeypatch.setattr(passwords, "_matches", stuck)
    waiting = [
        asyncio.ensure_future(auth_backend.call("POST /token?grant_type=password", GRANT)) for _ in range(50)
    ]
    await asyncio.to_thread(has_begun.wait, 30)
    read = await auth_backend.call("GET /user", token=session["access_token"])
    assert read.status_code == 200
    refreshed = await auth_backend.call(
        "POST /token?grant_type=refresh_token", {"refresh_token": session["refresh_token"]}
    )
    assert refreshed.status_code == 200
    assert not any(one.done() for one in waiting)
    may_go_on.set()
    assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200] * 50
