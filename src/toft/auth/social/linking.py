"""Whose account it is that a provider has spoken for: decided purely, then written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec

from toft.auth.call import Call, naming
from toft.auth.errors import AuthError, forbidden, unprocessable
from toft.auth.hooks import after_creation, ask
from toft.auth.identities import merge_metadata, tell_providers
from toft.auth.mailer import CONFIRMATION, send_letter
from toft.auth.model import User
from toft.auth.notices import tell_user
from toft.auth.records import users
from toft.auth.represent import user_json
from toft.auth.social.person import Person
from toft.pg.typed import TypedConnection


class SignIn(msgspec.Struct, frozen=True):
    """The identity is known."""

    user: User


class Link(msgspec.Struct, frozen=True):
    """The address is a user's, and the provider has verified it: the identity becomes one of theirs."""

    user: User


class Create(msgspec.Struct, frozen=True):
    """Somebody new. email: empty where the address is another user's and nobody has verified it."""

    email: str


class Refuse(msgspec.Struct, frozen=True):
    """Several users have the address; none of them is more right than the others."""


type Decision = SignIn | Link | Create | Refuse


def decide(
    person: Person, owner: User | None, sharers: Sequence[User], *, trusts_addresses: bool
) -> Decision:
    """Pure: whose account it is.

    owner: who has this identity already. sharers: the users with the person's address. trusts_addresses:
    nobody has to confirm addresses here, so those of providers count as verified too.
    """
    if owner is not None:
        return SignIn(owner)
    if not person.email:
        return Create("")
    if not (person.is_verified or trusts_addresses):
        return Create("" if sharers else person.email)
    if len(sharers) > 1:
        return Refuse()
    return Link(sharers[0]) if sharers else Create(person.email)


async def settle(call: Call, conn: TypedConnection, person: Person) -> User:
    """The user who signs in, with rows that say so. Raises `AuthError`."""
    owner = await users.load_by_identity(conn, person.provider, person.subject)
    sharers = await users.load_sharers(conn, person.email, call.audience) if person.email else []
    trusts = call.context.autoconfirms_email
    decision = decide(person, owner, sharers, trusts_addresses=trusts)
    match decision:
        case SignIn(user):
            user = await users.lock_user(conn, user.id) or user
            _refuse_banned(call, user)
            with naming("Database error updating user"):
                identity = next(
                    one for one in user.identities
                    if (one.provider, one.provider_id) == (person.provider, person.subject)
                )  # fmt: skip
                await users.update_identity_data(conn, identity, call.now, person.data)
                await users.touch_identity(conn, identity.id, call.now)
        case Link(user):
            user = await users.lock_user(conn, user.id) or user
            _refuse_banned(call, user)
            user = await _take_from_strangers(call, conn, user)
            await add_identity(call, conn, user, person)
            tell_user(call, user, "identity_linked", Provider=person.provider)
        case Create(email):
            user = await _create(call, conn, person, email)
        case Refuse():
            message = "Multiple accounts with the same email address in the same linking domain detected"
            raise AuthError(500, "unexpected_failure", message)
        case _:
            assert_never(decision)
    user = await _tell(call, conn, await users.load_user(conn, user.id) or user, person)
    return await _confirm(call, conn, user, person)


async def link_to(call: Call, conn: TypedConnection, target: User, person: Person) -> User:
    """Add the identity to the user who asked for it. Raises `AuthError`."""
    owner = await users.load_by_identity(conn, person.provider, person.subject)
    if owner is not None:
        own = owner.id == target.id
        words = "Identity is already linked" + ("" if own else " to another user")
        raise unprocessable("identity_already_exists", words)
    target = await users.lock_user(conn, target.id) or target
    changes: dict[str, object] = {"is_anonymous": False} if target.is_anonymous else {}
    if not target.email and person.is_verified:
        sharers = await users.load_sharers(conn, person.email, target.aud)
        if any(sharer.id != target.id for sharer in sharers):
            raise unprocessable("email_exists", "A user with this email address has already been registered")
        changes |= {"email": person.email, "email_confirmed_at": call.now}
    await add_identity(call, conn, target, person)
    if changes:
        with naming("Database error updating user"):
            await users.update_user(conn, target.id, call.now, changes)
    await call.note(conn, target, "identity_linked", {"provider": person.provider})
    tell_user(call, target, "identity_linked", Provider=person.provider)
    return await _tell(call, conn, await users.load_user(conn, target.id) or target, person)


async def add_identity(call: Call, conn: TypedConnection, user: User, person: Person) -> None:
    """One more way to recognise this user."""
    with naming("Database error creating identity"):
        await users.insert_identity(
            conn, call.context.new_id(), user.id, person.provider, person.subject, person.data, call.now
        )  # fmt: skip


async def _take_from_strangers(call: Call, conn: TypedConnection, user: User) -> User:
    """An address that nobody has confirmed may have been signed up by somebody else, who must not stay in."""
    if user.email_confirmed_at is not None or user.phone_confirmed_at is not None:
        return user
    with naming("Database error updating user"):
        for identity in user.identities:
            await users.delete_identity(conn, identity.id)
        changes: dict[str, object] = {
            "encrypted_password": "",
            "raw_user_meta_data": {},
            "raw_app_meta_data": {},
        }
        await users.update_user(conn, user.id, call.now, changes)
    return await users.load_user(conn, user.id) or user


async def _create(call: Call, conn: TypedConnection, person: Person, email: str) -> User:
    settings = call.context.settings
    if not settings.enable_signup:
        raise forbidden("signup_disabled", "Signups not allowed for this instance")
    user = User(
        id=call.context.new_id(),
        aud=call.audience,
        role=settings.default_role,
        email=email,
        phone="",
        encrypted_password="",
        app_metadata={"provider": person.provider, "providers": [person.provider]},
        user_metadata=person.data,
        created_at=call.now,
        updated_at=call.now,
    )
    await ask(call, conn, "before_user_created", {"user": user_json(user)})
    with naming("Database error saving new user"):
        await users.insert_user(conn, user, call.now)
        await add_identity(call, conn, user, person)
    after_creation(call, user)
    await call.note(conn, user, "user_signedup", {"provider": person.provider})
    return await users.load_user(conn, user.id) or user


async def _tell(call: Call, conn: TypedConnection, user: User, person: Person) -> User:
    """What the provider says goes into the user's own metadata, at every login."""
    merged = merge_metadata(user.user_metadata, person.data)
    if merged != user.user_metadata:
        with naming("Database error updating user"):
            await users.update_user(conn, user.id, call.now, {"raw_user_meta_data": merged})
    return await tell_providers(call, conn, await users.load_user(conn, user.id) or user)


async def _confirm(call: Call, conn: TypedConnection, user: User, person: Person) -> User:
    """Nobody gets in by an address that nobody has verified: then a mail goes out first."""
    if user.email_confirmed_at is not None or not user.email:
        return user
    if person.email == user.email and (person.is_verified or call.context.autoconfirms_email):
        with naming("Database error updating user"):
            await users.update_user(conn, user.id, call.now, {"email_confirmed_at": call.now})
        return await users.load_user(conn, user.id) or user
    await send_letter(call, conn, user, CONFIRMATION)
    name = person.provider
    words = f"Unverified email with {name}. A confirmation email has been sent to your {name} email"
    raise forbidden("provider_email_needs_verification", words).keeping_writes()


def _refuse_banned(call: Call, user: User) -> None:
    if user.is_banned(call.now):
        raise forbidden("user_banned", "User is banned")
