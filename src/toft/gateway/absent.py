"""What answers in place of services that are not here yet: Realtime and Edge Functions.

supabase-js must survive both. An HTTP error to its WebSocket would make it try again for ever, so that one is
opened, and each channel that it wants to join is refused with the reason and closed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec
from websockets.exceptions import ProtocolError
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Handshake
from websockets.server import ServerProtocol

from toft.http.message import Request, Response, Switch

_JSON: Final = (b"content-type", b"application/json; charset=utf-8")
_NO_REALTIME: Final = {
    "code": "TOFT-REALTIME-ABSENT",
    "message": "Realtime is not part of Toft yet: no changes, broadcasts or presence are sent",
    "hint": "ask again for what may have changed; everything else of supabase-js works",
}
_NO_FUNCTIONS: Final = {
    "code": "TOFT-FUNCTIONS-ABSENT",
    "message": "Edge Functions are not part of Toft yet: no function is run",
    "hint": "serve them by `supabase functions serve`, or call a function of the database by rpc()",
}
_LONGEST_MESSAGE: Final = 1 << 20
#: that a client came is no news
_silence = logging.getLogger("toft.http.websocket")
_silence.setLevel(logging.CRITICAL)
_decode = msgspec.json.decode
_encode = msgspec.json.encode


def answer_functions() -> Response:
    """501, with the reason as JSON: supabase-js gives it as a FunctionsHttpError."""
    return Response(501, [_JSON], _encode(_NO_FUNCTIONS))


def answer_realtime(request: Request) -> Response:
    """A WebSocket that refuses every channel, and 501 for everything else."""
    if (request.headers.get(b"upgrade") or "").lower() != "websocket":
        return Response(501, [_JSON], _encode(_NO_REALTIME))
    protocol = ServerProtocol(max_size=_LONGEST_MESSAGE, logger=_silence)
    head = [f"{request.method} {request.raw_path} HTTP/1.1".encode()]
    head += [b"%b: %b" % field for field in request.headers.raw]
    protocol.receive_data(b"\r\n".join(head) + b"\r\n\r\n")
    shaken = [event for event in protocol.events_received() if isinstance(event, Handshake)]
    if not shaken:
        return Response(400, [_JSON], b'{"message":"Bad request"}')
    reply = protocol.accept(shaken[0])
    headers = [(name.lower().encode(), value.encode()) for name, value in reply.headers.raw_items()]
    if reply.status_code != 101:
        return Response(reply.status_code, headers, bytes(reply.body or b""))
    protocol.send_response(reply)
    protocol.data_to_send()  # its head; ours says the same
    return Switch(
        [field for field in headers if field[0] != b"date"],
        lambda write, close: _Refusals(protocol, write, close),
    )


class _Refusals:
    """Speaks Phoenix's protocol, both versions of it, as far as saying no goes."""

    def __init__(
        self, protocol: ServerProtocol, write: Callable[[bytes], None], close: Callable[[], None]
    ) -> None:
        self._protocol = protocol
        self._write = write
        self._close = close

    def receive(self, data: bytes) -> None:
        protocol = self._protocol
        protocol.receive_data(data)
        for event in protocol.events_received():
            if isinstance(event, Frame) and event.opcode is Opcode.TEXT and event.fin:
                for answer in answers_to(bytes(event.data)):
                    try:
                        protocol.send_text(answer)
                    except ProtocolError:
                        break
        for piece in protocol.data_to_send():
            if piece:
                self._write(piece)
        if protocol.close_expected():
            self._close()


def answers_to(message: bytes) -> list[bytes]:
    """Pure: what is said to one message: a beat to a beat, no to a wish to join, nothing to anything else.

    >>> [reply, end] = answers_to(b'["1","2","realtime:x","phx_join",{}]')
    >>> b'"status":"error"' in reply, end
    (True, b'["1",null,"realtime:x","phx_close",{}]')
    """
    try:
        decoded: Any = _decode(message)
    except (msgspec.DecodeError, RecursionError):
        return []
    match decoded:
        case [join, ref, str(topic), str(event), _]:
            return [_encode([join, *parts]) for parts in _replies(ref, topic, event)]
        case {"topic": str(topic), "event": str(event)}:
            told = cast("dict[str, Any]", decoded)
            names = ("ref", "topic", "event", "payload")
            return [
                _encode(dict(zip(names, parts, strict=True)) | {"join_ref": told.get("join_ref")})
                for parts in _replies(told.get("ref"), topic, event)
            ]
        case _:
            return []


def _replies(ref: object, topic: str, event: str) -> list[tuple[object, str, str, dict[str, Any]]]:
    match event:
        case "phx_join":
            reason = f"{_NO_REALTIME['message']} ({_NO_REALTIME['code']})"
            refusal = {"status": "error", "response": {"reason": reason}}
            return [(ref, topic, "phx_reply", refusal), (None, topic, "phx_close", {})]
        case "heartbeat" | "phx_leave":
            return [(ref, topic, "phx_reply", {"status": "ok", "response": {}})]
        case _:
            return []
