"""A provider that is really asked: where it lets people sign in, and what it says of who came back."""

from __future__ import annotations

import base64
from typing import Any, Protocol, cast
from urllib.parse import quote, urlencode

import msgspec

from toft.auth.call import Call
from toft.auth.errors import AuthError, bad_request
from toft.auth.social.issuer import Issuer
from toft.auth.social.known import KNOWN, USUAL_SCOPES, base_url, issuer_of
from toft.auth.social.person import Grant, describe, from_claims
from toft.http.outgoing import OutsideFailed
from toft.protocol.worker import AuthProvider
from toft.tokens.caller import TokenError
from toft.tokens.foreign import verify_foreign


class Provider(Protocol):
    """One way out and back."""

    async def authorize_url(self, call: Call, state: str, extra: dict[str, str]) -> str:
        """Where the browser goes. extra: what the app's request adds, its `scopes` among it."""
        ...

    async def exchange(self, call: Call, state: str, code: str) -> Grant:
        """Who came back with this code. Raises `AuthError`."""
        ...


def redirect_uri(call: Call, provider: AuthProvider) -> str:
    """Where the provider sends the browser back to."""
    return provider.redirect_uri or f"{call.context.external_url}/callback"


def proof_of(call: Call, state: str) -> str:
    """The PKCE verifier of a flow towards its provider: nobody else can compute it, so it is not kept."""
    return call.context.ring.sign_symmetric({"scope": "provider-pkce", "state": state}).rpartition(".")[2]


class RealProvider:
    """A provider of Supabase's list, or any OpenID Connect issuer."""

    def __init__(self, name: str, settings: AuthProvider) -> None:
        self._name = name
        self._settings = settings
        self._client_id = settings.client_id.partition(",")[0]

    async def authorize_url(self, call: Call, state: str, extra: dict[str, str]) -> str:
        """See `Provider`. An address in the configuration is asked for its discovery document first."""
        known = KNOWN.get(self._name)
        asked = extra.pop("scopes", "")
        members = {
            **extra,
            "client_id": self._client_id,
            "redirect_uri": redirect_uri(call, self._settings),
            "response_type": "code",
            "state": state,
        }
        issuer = await self._discover(call) if self._settings.url else None
        if issuer is not None:
            scopes = known.scopes if known is not None else USUAL_SCOPES
            scopes = scopes if "openid" in scopes.split() else f"openid {scopes}"
            if "S256" in issuer.code_challenge_methods_supported:
                members |= {"code_challenge": _s256(proof_of(call, state)), "code_challenge_method": "S256"}
            address = issuer.authorization_endpoint
        elif known is not None:
            scopes = known.scopes
            address = known.authorize_url.replace("{url}", base_url(self._name, self._settings))
        else:
            raise bad_request("Unsupported provider: its issuer cannot be reached")
        members["scope"] = " ".join(dict.fromkeys(f"{scopes} {asked}".split()))
        return f"{address}{'&' if '?' in address else '?'}{urlencode(sorted(members.items()))}"

    async def exchange(self, call: Call, state: str, code: str) -> Grant:
        """See `Provider`."""
        if self._name == "github":
            return await self._exchange_with_github(call, code)
        source = issuer_of(self._name, self._settings)
        if not source:
            raise AuthError(500, "unexpected_failure", f"Provider {self._name} is no OpenID Connect issuer")
        issuer = await call.context.issuers.discover(source)
        tokens = await self._ask_for_tokens(call, issuer.token_endpoint, state, code, issuer)
        access_token = _text(tokens, "access_token")
        id_token = _text(tokens, "id_token")
        claims: dict[str, Any] = {}
        if id_token:
            claims = await verify_id_token(call, issuer, id_token, self._settings)
        if issuer.userinfo_endpoint and access_token and not claims.get("email"):
            told = await self._get(call, issuer.userinfo_endpoint, access_token)
            if claims and told.get("sub") != claims["sub"]:
                raise AuthError(
                    500, "unexpected_failure", "The provider contradicts itself about who this is"
                )
            claims |= told
        person = from_claims(self._name, issuer.issuer, claims)
        return Grant(person, access_token, _text(tokens, "refresh_token"))

    async def _discover(self, call: Call) -> Issuer | None:
        """None for one that has its addresses by convention only, like a GitHub of one's own."""
        try:
            return await call.context.issuers.discover(
                issuer_of(self._name, self._settings) or self._settings.url
            )
        except AuthError as error:
            call.context.report(f"auth /authorize: {error.message}")
            return None

    async def _ask_for_tokens(
        self, call: Call, url: str, state: str, code: str, issuer: Issuer | None
    ) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri(call, self._settings),
        }
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if issuer is not None and "S256" in issuer.code_challenge_methods_supported and self._settings.url:
            form["code_verifier"] = proof_of(call, state)
        methods = (
            issuer.token_endpoint_auth_methods_supported if issuer is not None else ("client_secret_post",)
        )
        if "client_secret_post" in methods or "client_secret_basic" not in methods:
            form |= {"client_id": self._client_id, "client_secret": self._settings.secret}
        else:
            pair = f"{quote(self._client_id, safe='')}:{quote(self._settings.secret, safe='')}"
            headers["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        tokens = await self._fetch(call, "POST", url, headers, urlencode(form).encode())
        if "error" in tokens:
            words = _text(tokens, "error_description") or _text(tokens, "error")
            raise AuthError(500, "unexpected_failure", f"Unable to exchange external code: {words}")
        return tokens

    async def _exchange_with_github(self, call: Call, code: str) -> Grant:
        """GitHub speaks OAuth 2.0 and has an API of its own to say who somebody is."""
        base = base_url(self._name, self._settings)
        api = "https://api.github.com" if base == "https://github.com" else f"{base}/api/v3"
        tokens = await self._ask_for_tokens(call, f"{base}/login/oauth/access_token", "", code, None)
        access_token = _text(tokens, "access_token")
        user = await self._get(call, f"{api}/user", access_token)
        listed = await self._fetch_any(call, "GET", f"{api}/user/emails", _bearer(access_token))
        emails = [one for one in cast("list[dict[str, Any]]", listed if isinstance(listed, list) else [])]
        emails.sort(key=lambda one: (one.get("primary") is not True, one.get("verified") is not True))
        main = emails[0] if emails else {"email": user.get("email"), "verified": False}
        person = describe(
            self._name, api, str(user.get("id", "")), _text(main, "email"),
            is_verified=main.get("verified") is True,
            name=_text(user, "name"), user_name=_text(user, "login"), picture=_text(user, "avatar_url"),
        )  # fmt: skip
        return Grant(person, access_token, _text(tokens, "refresh_token"))

    async def _get(self, call: Call, url: str, access_token: str) -> dict[str, Any]:
        return await self._fetch(call, "GET", url, _bearer(access_token))

    async def _fetch(
        self, call: Call, method: str, url: str, headers: dict[str, str], body: bytes | None = None
    ) -> dict[str, Any]:
        found = await self._fetch_any(call, method, url, headers, body)
        if not isinstance(found, dict):
            raise AuthError(500, "unexpected_failure", f"Provider {self._name} did not answer as it should")
        return cast("dict[str, Any]", found)

    async def _fetch_any(
        self, call: Call, method: str, url: str, headers: dict[str, str], body: bytes | None = None
    ) -> object:
        try:
            fetched = await call.context.issuers.outside.fetch(
                method, url, headers={"accept": "application/json", **headers}, body=body
            )
            return msgspec.json.decode(fetched.body)
        except (OutsideFailed, msgspec.DecodeError, RecursionError) as error:
            call.context.report(f"auth: {method} {url}: {error}")
            message = f"Provider {self._name} cannot be reached"
            raise AuthError(500, "unexpected_failure", message) from None


async def verify_id_token(call: Call, issuer: Issuer, token: str, settings: AuthProvider) -> dict[str, Any]:
    """The claims of an id_token of this issuer for our client. Raises `AuthError`; the log has the reason."""
    audiences = [part.strip() for part in settings.client_id.split(",") if part.strip()]
    reason = ""
    for again in (False, True):
        keys = await call.context.issuers.keys(issuer, again=again)
        try:
            return verify_foreign(token, keys, issuer.issuer, audiences, call.context.clock.unix())
        except TokenError as error:
            reason = error.detail or error.fault.value
    call.context.report(f"auth: an id_token of {issuer.issuer} was refused: {reason}")
    raise AuthError(400, "bad_oauth_callback", "Bad ID token")


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def _text(members: dict[str, Any], name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""


def _s256(verifier: str) -> str:
    import hashlib

    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
