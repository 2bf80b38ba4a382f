"""Hooks over HTTP, signed as Standard Webhooks: https://www.standardwebhooks.com."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
from typing import Final
from urllib.parse import urlsplit

from toft.auth.call import Call
from toft.auth.errors import AuthError, unprocessable
from toft.http.outgoing import LARGEST_ANSWER, Fetched, OutsideFailed, OutsideTimedOut
from toft.protocol.worker import AuthHook

_LONGEST_SECONDS: Final = 5
_MOST_TRIES: Final = 3
_PAUSE_SECONDS: Final = 0.1
_AGAIN: Final = (429, 503)
_NEAR: Final = ("localhost", "127.0.0.1", "::1")
#: how a container names the machine that it runs on; configurations made for one name it too
_DOCKER_HOST: Final = "host.docker.internal"


async def ask(call: Call, name: str, hook: AuthHook, body: bytes) -> bytes:
    """What the hook answers, JSON or nothing. Raises `AuthError` with the code that SDKs know."""
    url = _address(name, hook)
    message_id = str(call.context.new_id())
    headers = {
        "content-type": "application/json",
        **sign(hook.secrets, message_id, int(call.context.clock.unix()), body),
    }
    try:
        async with asyncio.timeout(_LONGEST_SECONDS):
            answer = await _insist(call, url, headers, body)
    except (TimeoutError, OutsideTimedOut):
        words = f"Failed to reach hook within maximum time of {_LONGEST_SECONDS:f} seconds"
        raise _failed(call, name, url, unprocessable("hook_timeout", words)) from None
    except OutsideFailed as error:
        call.context.report(f"hook {name} at {url}: {error}")
        if "larger" in str(error):
            words = f"Payload size exceeded size limit of {LARGEST_ANSWER} bytes"
            raise unprocessable("hook_payload_over_size_limit", words) from None
        raise unprocessable(
            "hook_timeout_after_retry", "Failed to reach hook after maximum retries"
        ) from None
    return _judge(call, name, url, answer)


def sign(secrets: tuple[str, ...], message_id: str, now: int, body: bytes) -> dict[str, str]:
    """Pure: the headers that prove where a hook comes from; one signature for each secret, for rotation."""
    signed = f"{message_id}.{now}.".encode() + body
    signatures: list[str] = []
    for secret in secrets:
        try:
            key = base64.b64decode(secret.rpartition("whsec_")[2], validate=True)
        except (binascii.Error, ValueError):
            continue
        signatures.append("v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode())
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(now),
        "webhook-signature": " ".join(signatures),
    }


async def _insist(call: Call, url: str, headers: dict[str, str], body: bytes) -> Fetched:
    """The first answer that is not a request to try again. Raises `OutsideFailed`."""
    for left in range(_MOST_TRIES - 1, -1, -1):
        try:
            answer = await call.context.issuers.outside.fetch(
                "POST", url, headers=headers, body=body, seconds=_LONGEST_SECONDS
            )
            if answer.status not in _AGAIN or "retry-after" not in answer.headers or not left:
                return answer
        except OutsideTimedOut:
            raise
        except OutsideFailed as error:
            if "larger" in str(error) or not left:
                raise
        await asyncio.sleep(_PAUSE_SECONDS)
    raise OutsideFailed("it asked to be tried again too often")


def _judge(call: Call, name: str, url: str, answer: Fetched) -> bytes:
    if answer.status == 204 or (answer.status in (200, 202) and not answer.body):
        return b""
    if answer.status not in (200, 202):
        words = {
            400: "Invalid payload sent to hook",
            401: "Hook requires authorization token",
        }.get(answer.status, f"Unexpected status code returned from hook: {answer.status}")
        raise _failed(call, name, url, AuthError(500, "unexpected_failure", words))
    if not answer.is_json:
        kind = answer.headers.get("content-type", "")
        words = f"Invalid JSON response. Received content-type: {kind}"
        raise _failed(call, name, url, AuthError(400, "hook_payload_invalid_content_type", words))
    return answer.body


def _address(name: str, hook: AuthHook) -> str:
    parts = urlsplit(hook.uri)
    if parts.hostname == _DOCKER_HOST:
        parts = parts._replace(netloc=parts.netloc.replace(_DOCKER_HOST, "127.0.0.1"))
    if parts.scheme == "http" and parts.hostname not in _NEAR:
        message = f"Hook {name} has a URI that cannot be called: only localhost is asked without TLS"
        raise AuthError(500, "unexpected_failure", message)
    return parts.geturl()


def _failed(call: Call, name: str, url: str, error: AuthError) -> AuthError:
    call.context.report(f"hook {name} at {url}: {error.message}")
    return error
