"""Pure: e-mail addresses and phone numbers as they are stored and compared."""

from __future__ import annotations

import re
import unicodedata

from toft.auth.errors import bad_request

_LONGEST_EMAIL = 255
#: one @, no spaces or control characters, a dot-separated domain of letters, digits and hyphens
_EMAIL = re.compile(
    r"[^\s@<>()\[\]\\,;:\"\x00-\x1f\x7f]+"
    r"@[a-z0-9\u0080-\uffff](?:[a-z0-9\u0080-\uffff-]*[a-z0-9\u0080-\uffff])?"
    r"(?:\.[a-z0-9\u0080-\uffff](?:[a-z0-9\u0080-\uffff-]*[a-z0-9\u0080-\uffff])?)*",
)
_PHONE = re.compile(r"[1-9][0-9]{1,14}")


def normalise_email(given: str) -> str:
    """The address in lower case. Raises `AuthError` for what is none."""
    if not given:
        raise bad_request("An email address is required")
    email = given.lower()
    if len(email) > _LONGEST_EMAIL:
        raise bad_request("An email address is too long")
    local, _, _ = email.partition("@")
    is_plain = not any(unicodedata.category(char)[0] in "CZ" for char in email)
    if not is_plain or not _EMAIL.fullmatch(email) or len(local) > 64 or ".." in email or local[0] == ".":
        raise bad_request("Unable to validate email address: invalid format")
    return email


def normalise_phone(given: str) -> str:
    """The digits of an E.164 number, without the plus sign. Raises `AuthError` for what is none."""
    phone = given.strip().replace(" ", "").removeprefix("+")
    if not _PHONE.fullmatch(phone):
        raise bad_request("Invalid phone number format (E.164 required)")
    return phone
