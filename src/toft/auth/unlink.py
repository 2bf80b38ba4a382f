"""A user's identities: linked by a social login, and taken away."""

from __future__ import annotations

from typing import Any

from toft.auth.call import Call, naming, parse_uuid
from toft.auth.errors import not_found, unprocessable
from toft.auth.identities import tell_providers
from toft.auth.model import Identity, User
from toft.auth.notices import tell_user
from toft.auth.records import users
from toft.auth.represent import json_response
from toft.http.message import Response
from toft.pg.typed import TypedConnection


async def unlink(call: Call) -> Response:
    """DELETE /user/identities/{identity_id}."""
    async with call.transaction() as conn:
        user = (await call.require_first_party(conn)).user
        require_linking(call)
        identity_id = parse_uuid(call.path["identity_id"])
        if identity_id is None:
            raise not_found("validation_failed", "identity_id must be an UUID")
        identity = next((one for one in user.identities if one.id == identity_id), None)
        if identity is None:
            raise unprocessable("identity_not_found", "Identity doesn't exist")
        if len(user.identities) == 1:
            message = "User must have at least 1 identity after unlinking"
            raise unprocessable("single_identity_not_deletable", message)
        with naming("Database error deleting identity"):
            await users.delete_identity(conn, identity.id)
            rest = [one for one in user.identities if one.id != identity.id]
            changes = await _plan_addresses(call, conn, user, identity, rest)
            if changes:
                await users.update_user(conn, user.id, call.now, changes)
        await call.note(conn, user, "identity_unlinked", {"identity_id": str(identity.id)})
        tell_user(call, user, "identity_unlinked", Provider=identity.provider)
        changed = await users.load_user(conn, user.id)
        if changed is not None:
            await tell_providers(call, conn, changed)
    return json_response({})


def require_linking(call: Call) -> None:
    """Raise unless users may link identities by themselves."""
    if not call.context.settings.enable_manual_linking:
        raise not_found("manual_linking_disabled", "Manual linking is disabled")


async def _plan_addresses(
    call: Call, conn: TypedConnection, user: User, gone: Identity, rest: list[Identity]
) -> dict[str, Any]:
    """The user's address, if it went with the identity: that of another one, verified ones first."""
    if gone.provider == "phone":
        return {"phone": "", "phone_confirmed_at": None}
    if not gone.email or gone.email != user.email or any(one.email == user.email for one in rest):
        return {}
    with_mail = [one for one in rest if one.email]
    with_mail.sort(key=lambda one: one.identity_data.get("email_verified") is not True)
    if not with_mail:
        return {"email": "", "email_confirmed_at": None}
    email = with_mail[0].email
    other = await users.load_by_email(conn, email, user.aud)
    if other is not None and other.id != user.id:
        message = "Unable to unlink identity due to email conflict"
        raise unprocessable("email_conflict_identity_not_deletable", message)
    return {"email": email}
