"""Pure: who sends a request, or why it is turned away. Decided once, here, for all services."""

from __future__ import annotations

from typing import Final

import msgspec

from toft.gateway.route import Route, needs_key
from toft.http.message import Request, Response
from toft.tokens.caller import Caller, Refusal
from toft.tokens.identify import ProjectKeys, identify

_WORDS: Final = {
    Refusal.NO_API_KEY: {
        "message": "No API key found in request",
        "hint": "Send one in the `apikey` header.",
    },
    Refusal.INVALID_API_KEY: {
        "message": "Invalid API key",
        "hint": "Send one of this backend's own keys: `toft lease env` prints them.",
    },
}
_BODIES: Final = {refusal: msgspec.json.encode(words) for refusal, words in _WORDS.items()}


def decide_caller(request: Request, route: Route, keys: ProjectKeys, now: float) -> Caller | Refusal:
    """The caller by the rules of `tokens/identify.py`; one without any key is refused where one is needed."""
    headers = request.headers
    if (
        headers.get(b"apikey") is None
        and headers.get(b"authorization") is None
        and needs_key(request.method, route)
    ):
        return Refusal.NO_API_KEY
    return identify(headers, route.service, keys, now)


def word_refusal(refusal: Refusal) -> Response:
    """As the hosted door words it, whichever service was addressed."""
    return Response(401, [(b"content-type", b"application/json; charset=utf-8")], _BODIES[refusal])
