"""Hooks: a project's own Postgres functions that Auth asks at certain steps, as `supabase_auth_admin`."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

from toft.auth.call import Call, naming
from toft.auth.errors import AuthError
from toft.auth.represent import write_instant
from toft.pg.quote import identifier
from toft.pg.typed import TypedConnection

_FUNCTION = re.compile(r"pg-functions://postgres/([^/]+)/([^/?#]+)/?")
_LONGEST_MILLISECONDS = 2000


async def ask(call: Call, conn: TypedConnection, name: str, payload: dict[str, Any]) -> dict[str, Any] | None:
    """The hook's answer; None when the project has no such hook. Raises what the hook refuses with."""
    hook = call.context.settings.hooks.get(name)
    if hook is None:
        return None
    found = _FUNCTION.fullmatch(hook.uri)
    if found is None:
        raise AuthError(500, "unexpected_failure", f"Hook {name} has a URI that cannot be called: {hook.uri}")
    metadata = {
        "uuid": str(call.context.new_id()),
        "time": write_instant(call.now),
        "name": name.replace("_", "-"),
        "ip_address": call.client_ip or "",
    }
    argument = msgspec.json.encode({"metadata": metadata, **payload}).decode()
    function = f"{identifier(found[1])}.{identifier(found[2])}"
    with naming(f"Error running hook URI: {hook.uri}"):
        async with conn.transaction():
            await conn.execute(f"set local statement_timeout = {_LONGEST_MILLISECONDS}")
            # the parameter has no type here, so that functions over json and over jsonb both match
            text = await conn.fetch_value(f"select {function}($1)::text", argument)
            await conn.execute("set local statement_timeout to default")
    answer: object = msgspec.json.decode(text) if text else {}
    if not isinstance(answer, dict):
        raise AuthError(500, "unexpected_failure", f"Hook {name} did not return a JSON object")
    members = cast("dict[str, Any]", answer)
    _raise_refusal(members)
    return members


def _raise_refusal(answer: dict[str, Any]) -> None:
    error = answer.get("error")
    if not isinstance(error, dict):
        return
    members = cast("dict[str, Any]", error)
    status, message = members.get("http_code"), members.get("message")
    status = status if isinstance(status, int) and 400 <= status <= 599 else 500
    raise AuthError(status, "unexpected_failure", message if isinstance(message, str) else "")
