"""Pure: values as the JSON that clients read. Absent times are left out, e-mail and phone never."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from toft.auth.model import Factor, Identity, User
from toft.http.message import HeaderList, Response

_TIMES = (
    "email_confirmed_at",
    "phone_confirmed_at",
    "confirmed_at",
    "invited_at",
    "confirmation_sent_at",
    "recovery_sent_at",
    "email_change_sent_at",
    "phone_change_sent_at",
    "reauthentication_sent_at",
    "last_sign_in_at",
    "banned_until",
    "deleted_at",
)


def write_instant(instant: datetime) -> str:
    """RFC 3339 in UTC, up to six decimals, trailing zeros cut.

    >>> write_instant(datetime(2026, 11, 30, 8, 35, 50, 123450, tzinfo=UTC))
    '2026-11-30T08:35:50.12345Z'
    >>> write_instant(datetime(2026, 11, 30, 8, 35, 50, tzinfo=UTC))
    '2026-11-30T08:35:50Z'
    """
    if instant.tzinfo is not None:
        instant = instant.astimezone(UTC)
    text = instant.strftime("%Y-%m-%dT%H:%M:%S")
    if instant.microsecond:
        text += f".{instant.microsecond:06}".rstrip("0")
    return text + "Z"


def user_json(user: User) -> dict[str, Any]:
    """A user as its owner, or an admin, sees it."""
    out: dict[str, Any] = {
        "id": str(user.id),
        "aud": user.aud,
        "role": user.role,
        "email": user.email,
        "phone": user.phone,
    }
    for name in _TIMES:
        instant: datetime | None = getattr(user, name)
        if instant is not None:
            out[name] = write_instant(instant)
    if user.email_change:
        out["new_email"] = user.email_change
    if user.phone_change:
        out["new_phone"] = user.phone_change
    out["app_metadata"] = user.app_metadata
    out["user_metadata"] = user.user_metadata
    if user.factors:
        out["factors"] = [factor_json(factor) for factor in user.factors]
    out["identities"] = [identity_json(identity) for identity in user.identities]
    for name in ("created_at", "updated_at"):
        instant = getattr(user, name)
        out[name] = write_instant(instant) if instant is not None else None
    out["is_anonymous"] = user.is_anonymous
    return out


def identity_json(identity: Identity) -> dict[str, Any]:
    """An identity; `id` is the provider's name for the user, `identity_id` the row."""
    out: dict[str, Any] = {
        "identity_id": str(identity.id),
        "id": identity.provider_id,
        "user_id": str(identity.user_id),
        "identity_data": identity.identity_data,
        "provider": identity.provider,
    }
    for name in ("last_sign_in_at", "created_at", "updated_at"):
        instant: datetime | None = getattr(identity, name)
        if instant is not None:
            out[name] = write_instant(instant)
    if identity.email:
        out["email"] = identity.email
    return out


def factor_json(factor: Factor) -> dict[str, Any]:
    """A second factor; its secret is never shown."""
    out: dict[str, Any] = {
        "id": str(factor.id),
        "created_at": write_instant(factor.created_at),
        "updated_at": write_instant(factor.updated_at),
        "status": factor.status,
        "factor_type": factor.factor_type,
        "phone": factor.phone,
        "last_challenged_at": (
            write_instant(factor.last_challenged_at) if factor.last_challenged_at is not None else None
        ),
    }
    if factor.friendly_name:
        out["friendly_name"] = factor.friendly_name
    return out


def json_response(body: object, status: int = 200, headers: HeaderList | None = None) -> Response:
    """An answer with a JSON body."""
    return Response(
        status,
        [(b"content-type", b"application/json"), *(headers or [])],
        msgspec.json.encode(body),
    )


def empty_response(status: int = 204) -> Response:
    """An answer without a body."""
    return Response(status)
