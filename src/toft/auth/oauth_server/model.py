"""Pure: clients, their requests and what users have granted, as values."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """An application that may ask users for their consent."""

    id: UUID
    secret_hash: str
    registration_type: str
    client_type: str
    auth_method: str
    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...]
    name: str
    uri: str
    logo_uri: str
    created_at: datetime
    updated_at: datetime


class Authorization(msgspec.Struct, frozen=True, kw_only=True):
    """A client's request, on its way from the first redirect to the code."""

    id: UUID
    authorization_id: str
    client_id: UUID
    user_id: UUID | None
    redirect_uri: str
    scope: str
    state: str
    resource: str
    challenge: str
    challenge_method: str
    status: str
    code: str
    created_at: datetime
    expires_at: datetime
    nonce: str


class Grant(msgspec.Struct, frozen=True):
    """What a user has agreed to."""

    client: Client
    scopes: tuple[str, ...]
    granted_at: datetime
