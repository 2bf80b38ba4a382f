"""A user's identities: those of the service itself, and the providers that are told in app_metadata."""

from __future__ import annotations

from toft.auth.call import Call, naming
from toft.auth.model import Identity, Json, User
from toft.auth.records import users
from toft.pg.typed import TypedConnection


def find_identity(user: User, provider: str) -> Identity | None:
    """The user's first identity of a provider."""
    return next((identity for identity in user.identities if identity.provider == provider), None)


async def set_address_identity(
    call: Call, conn: TypedConnection, user: User, provider: str, address: str, *, is_verified: bool
) -> User:
    """Let the `email` or `phone` identity tell this address; make it where a seed left it out."""
    data: Json = {"sub": str(user.id), provider: address, f"{provider}_verified": is_verified}
    identity = find_identity(user, provider)
    with naming("Database error updating user"):
        if identity is None:
            other = "phone" if provider == "email" else "email"
            data[f"{other}_verified"] = False
            await users.insert_identity(
                conn, call.context.new_id(), user.id, provider, str(user.id), data, call.now
            )  # fmt: skip
        else:
            await users.update_identity_data(conn, identity, call.now, data)
    changed = await users.load_user(conn, user.id) or user
    return await tell_providers(call, conn, changed)


async def tell_providers(call: Call, conn: TypedConnection, user: User) -> User:
    """Write the providers of the identities, oldest first, into app_metadata, when they are not there."""
    providers = list(dict.fromkeys(identity.provider for identity in user.identities))
    if not providers or (
        user.app_metadata.get("providers") == providers and user.app_metadata.get("provider")
    ):
        return user
    first = user.app_metadata.get("provider")
    metadata = {
        **user.app_metadata,
        "provider": first if first in providers else providers[0],
        "providers": providers,
    }
    with naming("Database error updating user"):
        await users.update_user(conn, user.id, call.now, {"raw_app_meta_data": metadata})
    return await users.load_user(conn, user.id) or user


def merge_metadata(known: Json, given: Json) -> Json:
    """Merge on the top level; a null deletes its key."""
    merged = {**known, **given}
    return {name: value for name, value in merged.items() if value is not None}
