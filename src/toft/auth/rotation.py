"""Pure: what becomes of a refresh token that is shown, by the rules of rotation and reuse."""

from __future__ import annotations

import msgspec


class Shown(msgspec.Struct, frozen=True):
    """The token that was shown, and its family, as they stand under the session's lock.

    is_revoked: it was swapped or revoked before. revoked_seconds_ago: since then. has_active: the family has
    a living token. is_parent_of_active: the newest of them was made from the shown one.
    """

    is_revoked: bool
    revoked_seconds_ago: float = 0
    has_active: bool = True
    is_parent_of_active: bool = False


class Swap(msgspec.Struct, frozen=True):
    """Revoke the shown token and make its child."""


class Repeat(msgspec.Struct, frozen=True):
    """Give the active token once more: the client never got the answer, or asked several times at once."""


class Branch(msgspec.Struct, frozen=True):
    """Make another child of a token that was revoked a moment ago."""


class Refuse(msgspec.Struct, frozen=True):
    """It was used before. `ends_family`: somebody has a copy, so nobody may refresh any more."""

    ends_family: bool


type Outcome = Swap | Repeat | Branch | Refuse


def decide_refresh(shown: Shown, *, reuse_interval_seconds: float, rotates: bool) -> Outcome:
    """What to do with the shown token.

    A family without a living token was ended because of a copy; the interval does not bring it back.
    """
    if not shown.is_revoked:
        return Swap()
    if shown.is_parent_of_active:
        return Repeat()
    if shown.has_active and shown.revoked_seconds_ago < reuse_interval_seconds:
        return Branch()
    return Refuse(ends_family=rotates)


class Limits(msgspec.Struct, frozen=True):
    """How long a session may go on; None: for ever."""

    timebox_seconds: float | None = None
    inactivity_seconds: float | None = None


def decide_session_end(
    limits: Limits,
    *,
    now: float,
    created_at: float,
    active_at: float,
    not_after: float | None,
) -> str | None:
    """Why a session may not be refreshed any more, as the suffix of the message; None when it may."""
    if not_after is not None and now > not_after:
        return ""
    if limits.timebox_seconds is not None and now > created_at + limits.timebox_seconds:
        return ""
    if limits.inactivity_seconds is not None and now > active_at + limits.inactivity_seconds:
        return " (Inactivity)"
    return None
