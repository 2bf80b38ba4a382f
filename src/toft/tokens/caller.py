"""Pure: who asks. The gateway decides it once per request and every service receives it as a value."""

from __future__ import annotations

import enum
from typing import Any


class Refusal(enum.Enum):
    """Why the API key or token was not accepted; the service that was addressed words the answer."""

    NO_API_KEY = "no-api-key"
    INVALID_API_KEY = "invalid-api-key"


class Caller:
    """The bearer of a request.

    token: the JWT that counts after the key rules (auth spec, section 3), or None for no bearer at all.
    role: the Postgres role named by verified claims. claims: verified claims; claims_json: the same as the
    compact JSON text that goes to `request.jwt.claims`. is_secret_key: came with a service_role key.
    error: a `TokenError` when a token was sent and does not verify; then role and claims are those of anon,
    and a service that requires a valid token must answer the error.
    """

    __slots__ = ("claims", "claims_json", "error", "is_secret_key", "role", "token")

    def __init__(
        self,
        *,
        role: str,
        claims: dict[str, Any],
        claims_json: bytes,
        token: str | None,
        is_secret_key: bool = False,
        error: TokenError | None = None,
    ) -> None:
        self.role = role
        self.claims = claims
        self.claims_json = claims_json
        self.token = token
        self.is_secret_key = is_secret_key
        self.error = error


class TokenFault(enum.Enum):
    """What is wrong with a token; each service has its own words for them (data-api spec 3, auth spec 1)."""

    EMPTY = "empty"
    PARTS = "parts"
    NO_KEY = "no-key"
    ALGORITHM = "algorithm"
    UNSECURED = "unsecured"
    CRYPTO = "crypto"
    ENCRYPTED = "encrypted"
    CLAIMS = "claims"
    CLAIM_TYPE = "claim-type"
    EXPIRED = "expired"
    NOT_YET_VALID = "not-yet-valid"
    ISSUED_IN_FUTURE = "issued-in-future"
    AUDIENCE_TYPE = "audience-type"
    AUDIENCE = "audience"


class TokenError(Exception):
    """A token that does not verify. `detail`: the claim's name, the number of parts, or a reason."""

    def __init__(self, fault: TokenFault, detail: str = "") -> None:
        super().__init__(fault.value)
        self.fault = fault
        self.detail = detail
