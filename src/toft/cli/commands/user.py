"""`toft user create|list|token|delete`: the users of a lease's backend."""

from __future__ import annotations

import json
from typing import Any, cast

from toft.cli.argv import Flag, Usage
from toft.cli.leases import show_lease
from toft.client.services import Api
from toft.client.users import Users
from toft.errors.daemon import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context


def create(context: Context) -> int:
    """Make a user who may sign in at once."""
    arguments = context.arguments
    user = _users(context).create(
        arguments.operands[0],
        arguments.get("password"),
        data=_members(context, "data"),
        app_data=_members(context, "app-data"),
        is_confirmed=not arguments.has("unconfirmed"),
    )
    if context.show.is_json:
        context.show.data(user)
    else:
        context.show.text(f"{user['id']}\n")
    return 0


def list_all(context: Context) -> int:
    """The users, newest first."""
    users = _users(context).list()
    if context.show.is_json:
        context.show.data({"users": users})
    elif not users:
        context.show.note("no users")
    else:
        rows = [
            [
                user["id"],
                user["email"] or user["phone"] or ("anonymous" if user.get("is_anonymous") else "-"),
                ",".join(user.get("app_metadata", {}).get("providers", [])) or "-",
                user.get("last_sign_in_at") or "never",
            ]
            for user in users
        ]
        context.show.table(["ID", "WHO", "BY", "SIGNED IN"], rows)
    return 0


def token(context: Context) -> int:
    """Sign a user in, making them first if need be; print the access token."""
    session = _users(context).sign_in(context.arguments.operands[0])
    if context.show.is_json:
        context.show.data(session)
    else:
        context.show.text(f"{session['access_token']}\n")
    return 0


def delete(context: Context) -> int:
    """Remove a user."""
    user = _users(context).delete(context.arguments.operands[0])
    if context.show.is_json:
        context.show.data({"deleted": user["id"]})
    else:
        context.show.text(f"{user['id']} deleted\n")
    return 0


def _users(context: Context) -> Users:
    lease = show_lease(context, context.daemon(), context.arguments.get("lease"))
    return Users(Api(str(lease["url"]), str(lease["secret_key"])))


def _members(context: Context, name: str) -> dict[str, Any] | None:
    text = context.arguments.get(name)
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UsageError(command=context.usage.name, cause=f"`--{name}` takes a JSON object")
    return cast("dict[str, Any]", value)


LEASE = Flag("lease", "Which one, by id or label, if there are several.", "LEASE")
_WHO = "EMAIL|PHONE|ID"
USAGE = {
    "create": (
        Usage(
            "toft user create",
            "Make a user who may sign in at once; prints the id.",
            (
                Flag("password", "A password; without one, none signs in.", "TEXT"),
                Flag("data", "The user's own metadata.", "JSON"),
                Flag("app-data", "Metadata that only administrators change, such as roles.", "JSON"),
                Flag("unconfirmed", "The address still has to be confirmed."),
                LEASE,
            ),
            "EMAIL",
            least=1,
            most=1,
            examples=("toft user create ada@example.com --password secret-1",),
        ),
        create,
    ),
    "list": (Usage("toft user list", "List the users, newest first.", (LEASE,)), list_all),
    "token": (
        Usage(
            "toft user token",
            "Sign a user in, made first if the address is new; prints the access token, as JSON the session.",
            (LEASE,),
            _WHO,
            least=1,
            most=1,
            examples=(
                'curl -H "Authorization: Bearer $(toft user token ada@example.com)" …',
                "toft user token ada@example.com --json",
            ),
        ),
        token,
    ),
    "delete": (Usage("toft user delete", "Remove a user.", (LEASE,), _WHO, least=1, most=1), delete),
}
