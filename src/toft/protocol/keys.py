"""Pure: the messages about a lease's signing keys, on both sides of the control API."""

from __future__ import annotations

from typing import Literal

import msgspec

type KeyAlgorithm = Literal["ES256", "RS256", "HS256"]


class RotateKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sign with a new key from now on; the ones before go on verifying."""

    alg: KeyAlgorithm = "ES256"


class SigningKeyCard(msgspec.Struct, frozen=True):
    """A key without its secret part. signs: new tokens are signed with it; else it verifies only."""

    kid: str
    alg: str
    signs: bool


class SigningKeys(msgspec.Struct, frozen=True):
    """A lease's keys, the newest first. Besides, the project's secret (HS256) always verifies."""

    lease: str
    keys: list[SigningKeyCard]
