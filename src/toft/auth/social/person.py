"""Pure: somebody as a provider describes them."""

from __future__ import annotations

from typing import Any

import msgspec

from toft.auth.addresses import normalise_email
from toft.auth.errors import AuthError
from toft.auth.model import Json


class Person(msgspec.Struct, frozen=True):
    """subject: the provider's own name for them. email: empty for none. data: goes to `identity_data`."""

    provider: str
    subject: str
    email: str
    is_verified: bool
    data: Json


class Grant(msgspec.Struct, frozen=True):
    """What came back from a provider: a person, and tokens for the provider's own API."""

    person: Person
    access_token: str = ""
    refresh_token: str = ""

    def __repr__(self) -> str:
        return f"Grant({self.person.provider!r}, {self.person.subject!r})"


def from_claims(provider: str, issuer: str, claims: dict[str, Any]) -> Person:
    """A person by OpenID Connect's standard claims. Raises `AuthError` where the subject is missing."""
    subject = claims.get("sub")
    subject = str(subject) if isinstance(subject, int) and not isinstance(subject, bool) else subject
    if not isinstance(subject, str) or not subject:
        raise AuthError(500, "unexpected_failure", "The provider did not say who this is")
    email = claims.get("email")
    verified = claims.get("email_verified")
    return describe(
        provider,
        issuer,
        subject,
        email if isinstance(email, str) else "",
        is_verified=verified is True or verified == "true",
        name=_text(claims, "name"),
        user_name=_text(claims, "preferred_username") or _text(claims, "nickname"),
        picture=_text(claims, "picture"),
    )


def describe(
    provider: str,
    issuer: str,
    subject: str,
    email: str,
    *,
    is_verified: bool,
    name: str = "",
    user_name: str = "",
    picture: str = "",
) -> Person:
    """A person in the words that `identity_data` has."""
    address = _address(email)
    told: Json = {
        "iss": issuer,
        "sub": subject,
        "provider_id": subject,
        "name": name,
        "full_name": name,
        "user_name": user_name,
        "preferred_username": user_name,
        "avatar_url": picture,
        "picture": picture,
        "email": address,
    }
    data = {key: value for key, value in told.items() if value}
    data |= {"email_verified": is_verified and bool(address), "phone_verified": False}
    return Person(provider, subject, address, is_verified and bool(address), data)


def _address(email: str) -> str:
    """What is no address counts as none: a provider's word is no reason to fail."""
    try:
        return normalise_email(email) if email else ""
    except AuthError:
        return ""


def _text(claims: dict[str, Any], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""
