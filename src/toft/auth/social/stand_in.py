"""The test provider: Toft plays the identity provider, so that "sign in with GitHub" works offline.

A page names a few test users and takes any other; what is chosen travels back in a sealed code. With
`prompt=none` and a `login_hint`, as OpenID Connect has it, there is no page: for tests without a browser.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import urlencode

import msgspec

from toft.auth.addresses import normalise_email
from toft.auth.call import Call
from toft.auth.errors import AuthError, bad_request
from toft.auth.html import escape, leave, page
from toft.auth.redirects import add_query
from toft.auth.social.person import Grant, describe
from toft.http.message import Response
from toft.tokens.caller import TokenError

_SCOPE: Final = "test-provider"
_CODE_SECONDS: Final = 300


class TestUser(msgspec.Struct, frozen=True):
    """Somebody who can be chosen by name."""

    user_name: str
    name: str
    email: str
    is_verified: bool = True


USERS: Final = (
    TestUser("ada", "Ada Lovelace", "ada@example.com"),
    TestUser("grace", "Grace Hopper", "grace@example.com"),
    TestUser("alan", "Alan Turing", "alan@example.com"),
    TestUser("unverified", "Una Verified", "unverified@example.com", is_verified=False),
)


class StandIn:
    """The provider, as the flow sees it."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def authorize_url(self, call: Call, state: str, extra: dict[str, str]) -> str:
        """Its page, or where the page would have led."""
        hint = extra.get("login_hint", "")
        if hint and "none" in extra.get("prompt", "").split():
            return _way_back(call, self._name, state, _by_hint(hint))
        members = {"provider": self._name, "state": state} | ({"login_hint": hint} if hint else {})
        return f"{call.context.external_url}/test-provider?{urlencode(members)}"

    async def exchange(self, call: Call, state: str, code: str) -> Grant:
        """The person who was chosen on the page. Raises `AuthError` for a code of another flow."""
        refused = bad_request("Unable to exchange external code", "bad_oauth_callback")
        try:
            claims = call.context.ring.verify(code, call.context.clock.unix())
        except TokenError:
            raise refused from None
        told: object = claims.get("person")
        is_ours = (claims.get("scope"), claims.get("state"), claims.get("provider")) == (
            _SCOPE, state, self._name,
        )  # fmt: skip
        if not is_ours or not isinstance(told, dict):
            raise refused
        user = msgspec.convert(cast("dict[str, Any]", told), TestUser)
        # a number that stays with the address, as providers have them
        subject = str(
            int(hashlib.sha256(f"{self._name}:{user.email or user.user_name}".encode()).hexdigest()[:12], 16)
        )
        person = describe(
            self._name, f"{call.context.external_url}/test-provider", subject, user.email,
            is_verified=user.is_verified, name=user.name, user_name=user.user_name,
        )  # fmt: skip
        # looks like one, opens nothing
        return Grant(person, f"test-provider-token-{subject}", f"test-provider-refresh-{subject}")


async def show(call: Call) -> Response:
    """GET /test-provider: who shall sign in?"""
    name, state = _require(call, call.query)
    hint = call.query.get("login_hint", "")
    hidden = _hidden(provider=name, state=state)
    buttons = "".join(
        f'<form method="post" action="test-provider">{hidden}{_hidden(user=user.user_name)}'
        f"<button>{escape(user.name)} ({escape(user.email)})"
        f"{'' if user.is_verified else ', not verified'}</button></form>"
        for user in USERS
    )
    own = f"""<form method="post" action="test-provider">{hidden}
<label for="email">E-mail</label><input id="email" name="email" type="email" value="{escape(hint)}">
<label for="name">Name</label><input id="name" name="name">
<p><label><input type="checkbox" name="verified" value="yes" checked>the e-mail is verified</label></p>
<button>Sign in</button></form>
<form method="post" action="test-provider">{hidden}{_hidden(action="cancel")}<button>Cancel</button></form>"""
    title = f"Sign in with {name}"
    told = (
        "<p>This is Toft's test provider. Whom you choose is who signs in; nothing leaves this machine.</p>"
    )
    return page(title, f"{told}{buttons}<h2>Somebody else</h2>{own}")


async def choose(call: Call) -> Response:
    """POST /test-provider: this one."""
    fields = {name: value for name, value in call.fields.items() if isinstance(value, str)}
    name, state = _require(call, fields)
    if fields.get("action") == "cancel":
        told = {"error": "access_denied", "error_description": "The user has cancelled", "state": state}
        return leave(add_query(f"{call.context.external_url}/callback", told))
    chosen = next((user for user in USERS if user.user_name == fields.get("user")), None)
    if chosen is None:
        email = fields.get("email", "")
        chosen = TestUser(
            user_name=email.partition("@")[0] or "somebody",
            name=fields.get("name", ""),
            email=normalise_email(email) if email else "",
            is_verified=fields.get("verified") == "yes",
        )
    return leave(_way_back(call, name, state, chosen))


def _require(call: Call, given: Mapping[str, str]) -> tuple[str, str]:
    """The provider's name and the flow's state, for a provider that is played here. Raises `AuthError`."""
    name = given.get("provider", "")
    settings = call.context.settings.external.get(name)
    if settings is None or not settings.is_played:
        raise AuthError(404, "oauth_provider_not_supported", "There is no test provider of this name")
    return name, given.get("state", "")


def _by_hint(hint: str) -> TestUser:
    """A test user by name or address, else anybody by address."""
    known = next((user for user in USERS if hint.lower() in (user.user_name, user.email)), None)
    if known is not None:
        return known
    email = normalise_email(hint)
    return TestUser(email.partition("@")[0], email.partition("@")[0], email)


def _way_back(call: Call, name: str, state: str, user: TestUser) -> str:
    expires_at = int(call.context.clock.unix()) + _CODE_SECONDS
    code = call.context.ring.sign_symmetric(
        {
            "scope": _SCOPE,
            "provider": name,
            "state": state,
            "exp": expires_at,
            "person": msgspec.to_builtins(user),
        }
    )
    return add_query(f"{call.context.external_url}/callback", {"code": code, "state": state})


def _hidden(**members: str) -> str:
    return "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in members.items()
    )
