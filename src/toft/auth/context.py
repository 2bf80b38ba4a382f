"""Everything that Auth needs of its surroundings, given by the gateway when a backend is attached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from uuid import UUID

import msgspec

from toft.auth.limits import Limits
from toft.auth.passwords import PasswordWork
from toft.auth.social.issuer import Issuers
from toft.pg.pool import Pool
from toft.pg.typed import TypedConnection
from toft.protocol.worker import AuthSettings
from toft.tokens.jwt import KeyRing
from toft.world import Clock, Entropy

DATABASE_ROLE = "supabase_auth_admin"


class Message(msgspec.Struct, frozen=True):
    """A mail or text message that Auth sends. `to` is an e-mail address or the digits of a phone number."""

    to: str
    subject: str
    text: str
    html: str = ""


class Outbox(Protocol):
    """Where messages go: the lease's mailbox, or a relay."""

    async def deliver(self, message: Message) -> None:
        """Hand a message over; a row that says it was sent is written afterwards."""
        ...


class AuthContext(msgspec.Struct, frozen=True, kw_only=True):
    """The world of one backend's Auth.

    pool: connections as `supabase_auth_admin`. external_url: the public base, with `/auth/v1`. report: takes
    a line for the lease's log, such as the true cause behind a failed sign-up.
    """

    pool: Pool[TypedConnection]
    ring: KeyRing
    clock: Clock
    entropy: Entropy
    passwords: PasswordWork
    settings: AuthSettings
    external_url: str
    outbox: Outbox
    #: identity providers, and the way to what else a project names outside
    issuers: Issuers
    limits: Limits
    report: Callable[[str], None]

    def new_id(self) -> UUID:
        """A random identifier for a row."""
        return UUID(bytes=self.entropy.bytes(16), version=4)

    @property
    def autoconfirms_email(self) -> bool:
        """Whether an e-mail counts as confirmed without anybody clicking."""
        return not self.settings.email_enable_confirmations
