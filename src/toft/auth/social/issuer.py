"""OpenID Connect issuers: their discovery documents and keys, kept for a while."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from toft.auth.errors import AuthError
from toft.http.outgoing import Outside, OutsideFailed
from toft.world import Clock

#: a document that is older is fetched again
_FRESH_SECONDS: Final = 600
#: a key that is not known asks for the keys again, but no more often than this
_LEAST_SECONDS: Final = 10


class Issuer(msgspec.Struct, frozen=True):
    """What a discovery document says, as far as a login needs it."""

    issuer: str
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    userinfo_endpoint: str = ""
    jwks_uri: str = ""
    code_challenge_methods_supported: tuple[str, ...] = ()
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class Issuers:
    """All issuers that a worker has met. Shared by its backends: what they publish is public."""

    def __init__(self, outside: Outside, clock: Clock) -> None:
        self.outside = outside
        self._clock = clock
        self._kept: dict[str, tuple[float, bytes]] = {}

    async def discover(self, url: str) -> Issuer:
        """The issuer at this address. Raises `AuthError` when it cannot be reached or says something else."""
        address = f"{url.rstrip('/')}/.well-known/openid-configuration"
        try:
            found = msgspec.json.decode(await self._get(address, _FRESH_SECONDS), type=Issuer)
        except msgspec.MsgspecError:
            raise _unusable(address, "it is no OpenID Connect discovery document") from None
        # Azure's common endpoint names a template; every other issuer has to be who it was asked for
        if found.issuer.rstrip("/") != url.rstrip("/") and "{tenantid}" not in found.issuer:
            raise _unusable(address, f"it speaks for another issuer, {found.issuer}")
        return found

    async def keys(self, issuer: Issuer, *, again: bool = False) -> dict[str, Any]:
        """The issuer's JWK set. again: a token names a key that was not among them."""
        raw = await self._get(issuer.jwks_uri, _LEAST_SECONDS if again else _FRESH_SECONDS)
        try:
            keys = msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            keys = None
        if not isinstance(keys, dict):
            raise _unusable(issuer.jwks_uri, "it is no JWK set")
        return cast("dict[str, Any]", keys)

    async def _get(self, url: str, fresh_seconds: float) -> bytes:
        now = self._clock.unix()
        kept = self._kept.get(url)
        if kept is not None and now - kept[0] < fresh_seconds:
            return kept[1]
        try:
            fetched = await self.outside.fetch("GET", url, headers={"accept": "application/json"})
        except OutsideFailed as error:
            raise _unusable(url, str(error)) from None
        if fetched.status != 200:
            raise _unusable(url, f"it answered {fetched.status}")
        self._kept[url] = (now, fetched.body)
        return fetched.body


def _unusable(url: str, why: str) -> AuthError:
    return AuthError(500, "unexpected_failure", f"The provider's {url} cannot be used: {why}")
