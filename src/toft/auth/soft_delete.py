"""Removing a user while keeping the row: nothing that was known can be read back, and nobody can sign in."""

from __future__ import annotations

import hashlib

from toft.auth.call import Call
from toft.auth.model import User
from toft.auth.records import flows, sessions, users
from toft.auth.user import CLEARED_TOKENS
from toft.pg.typed import TypedConnection


async def soft_delete(call: Call, conn: TypedConnection, user: User) -> None:
    """Replace what identifies by hashes, empty what describes, end what is open."""
    await users.update_user(
        conn,
        user.id,
        call.now,
        {
            "email": _obscure(user, user.email)[:255],
            # a phone number is compared as text; 15 digits' worth of hash keeps it unique
            "phone": _obscure(user, user.phone)[:15],
            "encrypted_password": "",
            "email_change": "",
            "phone_change": "",
            "raw_user_meta_data": {},
            "raw_app_meta_data": {},
            "deleted_at": call.now,
            **CLEARED_TOKENS,
        },
    )
    for identity in user.identities:
        await users.obscure_identity(conn, identity.id, _obscure(user, identity.provider_id), call.now)
    await flows.delete_tokens(conn, user.id)
    await users.delete_factors(conn, user.id)
    await sessions.delete_sessions(conn, user.id)


def _obscure(user: User, text: str) -> str:
    return hashlib.sha256(f"{user.id}{text}".encode()).hexdigest() if text else ""
