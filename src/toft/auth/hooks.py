"""Hooks: what a project of its own says at certain steps, by a Postgres function or over HTTP.

Functions run as `supabase_auth_admin` in the step's transaction. HTTP hooks are asked by `webhooks.py`.
"""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

from toft.auth import webhooks
from toft.auth.call import Call, naming
from toft.auth.errors import AuthError
from toft.auth.model import User
from toft.auth.represent import user_json, write_instant
from toft.pg.quote import identifier
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.pg.typed import TypedConnection
from toft.protocol.worker import AuthHook

_FUNCTION = re.compile(r"pg-functions://postgres/([^/]+)/([^/?#]+)/?")
_LONGEST_MILLISECONDS = 2000


def has_hook(call: Call, name: str) -> bool:
    """Whether the project wants to be asked at this step."""
    return name in call.context.settings.hooks


async def ask(call: Call, conn: TypedConnection, name: str, payload: dict[str, Any]) -> dict[str, Any] | None:
    """The hook's answer; None when the project has no such hook. Raises what the hook refuses with."""
    hook = call.context.settings.hooks.get(name)
    if hook is None:
        return None
    metadata = {
        "uuid": str(call.context.new_id()),
        "time": write_instant(call.now),
        "name": name.replace("_", "-"),
        "ip_address": call.client_ip or "",
    }
    body = msgspec.json.encode({"metadata": metadata, **payload})
    if _FUNCTION.fullmatch(hook.uri):
        raw = await _call_function(conn, hook, body)
    elif hook.uri.startswith(("http://", "https://")):
        raw = await webhooks.ask(call, name, hook, body)
    else:
        raise AuthError(500, "unexpected_failure", f"Hook {name} has a URI that cannot be called: {hook.uri}")
    members = _read(name, raw)
    _raise_refusal(members)
    return members


def after_creation(call: Call, user: User) -> None:
    """Tell the hook `after_user_created` when the user is there for good; nobody waits for its consent."""
    if has_hook(call, "after_user_created"):
        call.later.append(lambda: _tell_of_creation(call, user))


async def _tell_of_creation(call: Call, user: User) -> None:
    try:
        async with call.context.pool.lend() as conn:
            await ask(call, conn, "after_user_created", {"user": user_json(user)})
    except AuthError as error:
        call.report(error)
    except (PostgresError, ConnectionLost, Unreachable) as error:
        call.context.report(f"hook after_user_created: {error}")


async def _call_function(conn: TypedConnection, hook: AuthHook, body: bytes) -> bytes:
    found = _FUNCTION.fullmatch(hook.uri)
    assert found is not None  # noqa: S101  (the caller looked)
    function = f"{identifier(found[1])}.{identifier(found[2])}"
    with naming(f"Error running hook URI: {hook.uri}"):
        async with conn.transaction():
            await conn.execute(f"set local statement_timeout = {_LONGEST_MILLISECONDS}")
            # the parameter has no type here, so that functions over json and over jsonb both match
            text = await conn.fetch_value(f"select {function}($1)::text", body.decode())
            await conn.execute("set local statement_timeout to default")
    return text.encode() if isinstance(text, str) else b""


def _read(name: str, raw: bytes) -> dict[str, Any]:
    try:
        answer: object = msgspec.json.decode(raw) if raw.strip() else {}
    except (msgspec.DecodeError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise AuthError(500, "unexpected_failure", f"Hook {name} did not return a JSON object")
    return cast("dict[str, Any]", answer)


def _raise_refusal(answer: dict[str, Any]) -> None:
    error = answer.get("error")
    if not isinstance(error, dict):
        return
    members = cast("dict[str, Any]", error)
    status, message = members.get("http_code"), members.get("message")
    status = status if isinstance(status, int) and 400 <= status <= 599 else 500
    raise AuthError(status, "unexpected_failure", message if isinstance(message, str) else "")
