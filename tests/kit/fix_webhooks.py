"""A project's own HTTP endpoints: what they were sent, and what they answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from toft.http.message import Request, Response
from toft.http.server import Listener, listen

type Answers = Callable[[dict[str, Any]], Response | Awaitable[Response]]


def say(body: object = None, status: int = 200, kind: str = "application/json", **headers: str) -> Response:
    """An answer with a JSON body."""
    told = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    raw = b"" if body is None else json.dumps(body).encode()
    return Response(status, [(b"content-type", kind.encode()), *told], raw)


class Endpoint:
    """Answers every request as `answers` says and keeps what it got."""

    def __init__(self) -> None:
        self.answers: Answers = lambda _: say({})
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.listener: Listener | None = None

    @property
    def url(self) -> str:
        assert self.listener is not None
        return f"http://127.0.0.1:{self.listener.port}/hook"

    @property
    def payloads(self) -> list[dict[str, Any]]:
        """The bodies, oldest first."""
        return [json.loads(body) for _, body in self.got]

    async def handle(self, request: Request) -> Response:
        body = await request.body.read(1 << 20)
        self.got.append(({name.decode(): value.decode() for name, value in request.headers.raw}, body))
        answer = self.answers(json.loads(body))
        return answer if isinstance(answer, Response) else await answer


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    """One endpoint on a port of its own."""
    served = Endpoint()
    served.listener = await listen(served.handle)
    yield served
    await served.listener.close()
