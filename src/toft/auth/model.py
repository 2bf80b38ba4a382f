"""Pure: the rows of schema `auth` as values. NULL texts are empty texts here, as seeds leave either."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

type Json = dict[str, Any]

NIL = UUID(int=0)


class Identity(msgspec.Struct, frozen=True):
    """One way to be recognised: `email`, `phone`, or a provider's subject."""

    id: UUID
    provider_id: str
    user_id: UUID
    identity_data: Json
    provider: str
    last_sign_in_at: datetime | None
    created_at: datetime | None
    updated_at: datetime | None
    email: str


class Factor(msgspec.Struct, frozen=True):
    """A second factor."""

    id: UUID
    user_id: UUID
    friendly_name: str
    factor_type: str
    status: str
    created_at: datetime
    updated_at: datetime
    secret: str
    phone: str
    last_challenged_at: datetime | None


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A user with identities and factors."""

    id: UUID
    aud: str
    role: str
    email: str
    phone: str
    encrypted_password: str
    email_confirmed_at: datetime | None = None
    phone_confirmed_at: datetime | None = None
    confirmed_at: datetime | None = None
    invited_at: datetime | None = None
    confirmation_token: str = ""
    confirmation_sent_at: datetime | None = None
    recovery_token: str = ""
    recovery_sent_at: datetime | None = None
    email_change: str = ""
    email_change_token_new: str = ""
    email_change_token_current: str = ""
    email_change_confirm_status: int = 0
    email_change_sent_at: datetime | None = None
    phone_change: str = ""
    phone_change_token: str = ""
    phone_change_sent_at: datetime | None = None
    reauthentication_token: str = ""
    reauthentication_sent_at: datetime | None = None
    last_sign_in_at: datetime | None = None
    app_metadata: Json
    user_metadata: Json
    banned_until: datetime | None = None
    deleted_at: datetime | None = None
    created_at: datetime | None
    updated_at: datetime | None
    is_sso_user: bool = False
    is_anonymous: bool = False
    identities: list[Identity] = msgspec.field(default_factory=list[Identity])
    factors: list[Factor] = msgspec.field(default_factory=list[Factor])

    def is_banned(self, now: datetime) -> bool:
        """Whether the user may not sign in just now."""
        return self.banned_until is not None and self.banned_until > now

    @property
    def verified_factors(self) -> list[Factor]:
        return [factor for factor in self.factors if factor.status == "verified"]

    @property
    def name_in_audit(self) -> str:
        return self.phone or self.email


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it stands in its row; `amr` newest first."""

    id: UUID
    user_id: UUID
    created_at: datetime
    aal: str
    factor_id: UUID | None = None
    not_after: datetime | None = None
    refreshed_at: datetime | None = None
    oauth_client_id: UUID | None = None
    scopes: str = ""
    tag: str = ""
    amr: list[Method] = msgspec.field(default_factory=list["Method"])


class Method(msgspec.Struct, frozen=True):
    """How somebody proved who they are, and when."""

    method: str
    at: datetime


class RefreshToken(msgspec.Struct, frozen=True):
    """A refresh token of the first kind."""

    id: int
    token: str
    session_id: UUID | None
    parent: str
    is_revoked: bool
    updated_at: datetime | None


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """A PKCE or social login flow under way."""

    id: UUID
    user_id: UUID | None
    auth_code: str
    challenge_method: str
    challenge: str
    provider_type: str
    provider_access_token: str
    provider_refresh_token: str
    authentication_method: str
    created_at: datetime
    code_issued_at: datetime | None
    referrer: str
    linking_target_id: UUID | None
