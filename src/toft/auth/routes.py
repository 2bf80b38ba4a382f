"""The table of Auth's routes. A path is matched exactly; `{name}` stands for one segment."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable

import msgspec

from toft.auth import (
    admin,
    info,
    links,
    logout,
    mfa,
    otp,
    signup,
    switched_off,
    token,
    unlink,
    user,
    verify,
)
from toft.auth.call import Call
from toft.auth.oauth_server import authorize, clients, consent, discovery, page
from toft.auth.oauth_server import token as client_token
from toft.auth.social import flow as social
from toft.auth.social import stand_in
from toft.http.message import Response

type Endpoint = Callable[[Call], Awaitable[Response]]


class BodyKind(enum.Enum):
    """What an endpoint expects of the body."""

    NONE = "none"
    #: a JSON object must be there
    JSON = "json"
    #: a JSON object, or nothing
    OPTIONAL = "optional"
    #: an HTML form, or a JSON object, or nothing
    FORM = "form"


class Route(msgspec.Struct, frozen=True):
    """One method of one path."""

    method: str
    path: tuple[str, ...]
    endpoint: Endpoint
    body: BodyKind


class Match(msgspec.Struct, frozen=True):
    """A route and the variable segments of the path."""

    route: Route
    variables: dict[str, str]


def _route(line: str, endpoint: Endpoint, body: BodyKind = BodyKind.NONE) -> Route:
    method, path = line.split(" ")
    return Route(method, tuple(path.strip("/").split("/")), endpoint, body)


ROUTES: tuple[Route, ...] = (
    _route("GET /health", info.health),
    _route("GET /settings", info.settings),
    _route("GET /.well-known/jwks.json", info.jwks),
    _route("POST /signup", signup.signup, BodyKind.JSON),
    _route("POST /token", token.token, BodyKind.JSON),
    _route("POST /otp", otp.otp, BodyKind.JSON),
    _route("POST /magiclink", otp.magiclink, BodyKind.JSON),
    _route("POST /recover", otp.recover, BodyKind.JSON),
    _route("POST /resend", otp.resend, BodyKind.JSON),
    _route("GET /verify", verify.verify_link),
    _route("POST /verify", verify.verify_code, BodyKind.JSON),
    _route("POST /invite", links.invite, BodyKind.JSON),
    _route("GET /reauthenticate", user.reauthenticate),
    _route("GET /user", user.read_user),
    _route("PUT /user", user.update_user, BodyKind.JSON),
    _route("POST /logout", logout.logout, BodyKind.OPTIONAL),
    _route("GET /authorize", social.authorize),
    _route("GET /callback", social.callback),
    _route("POST /callback", social.callback, BodyKind.FORM),
    _route("GET /test-provider", stand_in.show),
    _route("POST /test-provider", stand_in.choose, BodyKind.FORM),
    _route("GET /user/identities/authorize", social.link_identity),
    _route("DELETE /user/identities/{identity_id}", unlink.unlink),
    _route("POST /factors", mfa.enroll, BodyKind.JSON),
    _route("POST /factors/{factor_id}/challenge", mfa.challenge, BodyKind.OPTIONAL),
    _route("POST /factors/{factor_id}/verify", mfa.verify, BodyKind.JSON),
    _route("DELETE /factors/{factor_id}", mfa.unenroll),
    _route("GET /admin/users", admin.list_users),
    _route("POST /admin/users", admin.create_user, BodyKind.JSON),
    _route("GET /admin/users/{user_id}", admin.read_user),
    _route("PUT /admin/users/{user_id}", admin.update_user, BodyKind.JSON),
    _route("DELETE /admin/users/{user_id}", admin.delete_user, BodyKind.OPTIONAL),
    _route("GET /admin/users/{user_id}/factors", mfa.list_factors),
    _route("PUT /admin/users/{user_id}/factors/{factor_id}", mfa.update_factor, BodyKind.JSON),
    _route("DELETE /admin/users/{user_id}/factors/{factor_id}", mfa.delete_factor),
    _route("GET /admin/audit", admin.list_audit),
    _route("POST /admin/generate_link", links.generate_link, BodyKind.JSON),
    _route("GET /.well-known/openid-configuration", discovery.openid_configuration),
    _route("GET /.well-known/oauth-authorization-server", discovery.authorization_server),
    _route("POST /oauth/clients/register", clients.register, BodyKind.JSON),
    _route("GET /oauth/authorize", authorize.authorize),
    _route("GET /oauth/authorizations/{authorization_id}", consent.read_details),
    _route("POST /oauth/authorizations/{authorization_id}/consent", consent.decide, BodyKind.JSON),
    _route("GET /oauth/consent", page.show),
    _route("POST /oauth/consent", page.answer, BodyKind.FORM),
    _route("POST /oauth/token", client_token.token, BodyKind.FORM),
    _route("POST /oauth/revoke", client_token.revoke, BodyKind.FORM),
    _route("GET /oauth/userinfo", client_token.userinfo),
    _route("GET /user/oauth/grants", consent.list_grants),
    _route("DELETE /user/oauth/grants", consent.revoke_grant),
    _route("GET /admin/oauth/clients", clients.list_clients),
    _route("POST /admin/oauth/clients", clients.create_client, BodyKind.JSON),
    _route("GET /admin/oauth/clients/{client_id}", clients.read_client),
    _route("PUT /admin/oauth/clients/{client_id}", clients.update_client, BodyKind.JSON),
    _route("DELETE /admin/oauth/clients/{client_id}", clients.delete_client),
    _route(
        "POST /admin/oauth/clients/{client_id}/regenerate_secret",
        clients.regenerate_secret,
        BodyKind.OPTIONAL,
    ),
    _route("POST /sso", switched_off.single_sign_on),
    _route("GET /sso/saml/metadata", switched_off.single_sign_on),
    _route("POST /sso/saml/acs", switched_off.single_sign_on),
    _route("GET /admin/sso/providers", switched_off.list_sso_providers),
    _route("POST /admin/sso/providers", switched_off.single_sign_on),
    _route("GET /admin/sso/providers/{provider_id}", switched_off.sso_provider),
    _route("PUT /admin/sso/providers/{provider_id}", switched_off.sso_provider),
    _route("DELETE /admin/sso/providers/{provider_id}", switched_off.sso_provider),
    _route("GET /admin/custom-providers", switched_off.custom_providers),
    _route("POST /admin/custom-providers", switched_off.custom_providers),
    _route("GET /admin/custom-providers/{provider_id}", switched_off.custom_providers),
    _route("PUT /admin/custom-providers/{provider_id}", switched_off.custom_providers),
    _route("DELETE /admin/custom-providers/{provider_id}", switched_off.custom_providers),
    _route("GET /passkeys", switched_off.passkeys),
    _route("POST /passkeys/authentication/options", switched_off.passkeys),
    _route("POST /passkeys/authentication/verify", switched_off.passkeys),
    _route("POST /passkeys/registration/options", switched_off.passkeys),
    _route("POST /passkeys/registration/verify", switched_off.passkeys),
)


def find_route(method: str, path: str) -> Match | set[str]:
    """The route, or the methods that this path does have (none: the path is unknown)."""
    segments = tuple(path.strip("/").split("/"))
    methods: set[str] = set()
    for route in ROUTES:
        variables = _match(route.path, segments)
        if variables is None:
            continue
        if route.method == method:
            return Match(route, variables)
        methods.add(route.method)
    return methods


def _match(pattern: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    variables: dict[str, str] = {}
    for part, segment in zip(pattern, segments, strict=True):
        if part.startswith("{"):
            variables[part[1:-1]] = segment
        elif part != segment:
            return None
    return variables
