"""Pure: from the path of a request to the service behind it."""

from __future__ import annotations

import enum
import functools
from typing import Final, Literal

import msgspec

type Service = Literal["rest", "auth", "storage"]


class Door(enum.Enum):
    """What the gateway answers by itself."""

    WELCOME = "welcome"
    HEALTH = "health"
    #: the mailbox, which needs neither key nor database
    MAIL = "mail"
    #: why an earlier request was refused; its unguessable name is the key
    EXPLANATION = "explanation"
    #: services that a Supabase backend has and this one has not
    REALTIME = "realtime"
    FUNCTIONS = "functions"
    NOTHING = "nothing"


class Route(msgspec.Struct, frozen=True):
    """A service, and the path that it sees: percent-encoded as it came, beginning with a slash.

    is_trial: of the Data API: nothing of what it does stays. profile: the schema that the path stands for.
    """

    service: Service
    path: str
    is_trial: bool = False
    profile: str | None = None


_PREFIXES: Final[tuple[tuple[str, Service], ...]] = (
    ("/rest/v1", "rest"),
    ("/auth/v1", "auth"),
    ("/storage/v1", "storage"),
)


MAIL_PREFIX: Final = "/mail"
EXPLAIN_PREFIX: Final = "/explain"

_DOORS: Final = (
    (MAIL_PREFIX, Door.MAIL),
    (EXPLAIN_PREFIX, Door.EXPLANATION),
    ("/realtime/v1", Door.REALTIME),
    ("/functions/v1", Door.FUNCTIONS),
)
_EXACT: Final[dict[str, Route | Door]] = {
    "/": Door.WELCOME,
    "/health": Door.HEALTH,
    "/realtime/v1": Door.REALTIME,
    "/functions/v1": Door.FUNCTIONS,
    "/graphql/v1": Route("rest", "/rpc/graphql", profile="graphql_public"),
    # RFC 8414 puts an issuer's path behind the well-known name, so these arrive at the root.
    "/.well-known/oauth-authorization-server/auth/v1": Route(
        "auth", "/.well-known/oauth-authorization-server"
    ),
    "/.well-known/openid-configuration/auth/v1": Route("auth", "/.well-known/openid-configuration"),
}


@functools.lru_cache(1024)
def decide_route(raw_path: str) -> Route | Door:
    """Where a request goes.

    >>> decide_route("/rest/v1/todos")
    Route(service='rest', path='/todos', is_trial=False, profile=None)
    >>> decide_route("/auth/v1")
    Route(service='auth', path='/', is_trial=False, profile=None)
    >>> decide_route("/explain/rest/v1/todos")
    Route(service='rest', path='/todos', is_trial=True, profile=None)
    >>> decide_route("/rest/v12")
    <Door.NOTHING: 'nothing'>
    """
    for prefix, service in _PREFIXES:
        if raw_path.startswith(prefix):
            rest = raw_path[len(prefix) :]
            if not rest:
                return Route(service, "/")
            if rest[0] == "/":
                return Route(service, rest)
    for prefix, door in _DOORS:
        if raw_path.startswith(prefix + "/"):
            return _explained(raw_path) if door is Door.EXPLANATION else door
    return _EXACT.get(raw_path, Door.NOTHING)


def _explained(raw_path: str) -> Route | Door:
    """Behind the prefix stands a request to be tried, or the name of an explanation."""
    tried = decide_route(raw_path.removeprefix(EXPLAIN_PREFIX))
    if isinstance(tried, Route) and tried.service == "rest":
        return msgspec.structs.replace(tried, is_trial=True)
    return Door.EXPLANATION


def does_own_cors(route: Route) -> bool:
    """Resumable uploads answer browsers' questions themselves, with their protocol's own fields."""
    return route.service == "storage" and route.path.startswith("/upload/resumable")


_OPEN_AUTH_PATHS: Final = frozenset(
    (
        "/verify",
        "/callback",
        "/authorize",
        "/test-provider",
        "/oauth/authorize",
        "/oauth/consent",
        "/oauth/revoke",
        "/oauth/token",
        "/oauth/clients/register",
        "/oauth/userinfo",
    )
)


def needs_key(method: str, route: Route) -> bool:
    """Whether a request without API key and without Authorization is turned away at the door.

    Links in mails and OAuth clients have no key, nor have links to public or signed objects; Storage words
    its own refusal.
    """
    if method == "OPTIONS" or route.service == "storage":
        return False
    if route.service == "rest":
        return True
    path = route.path
    return path not in _OPEN_AUTH_PATHS and not path.startswith(("/.well-known/", "/sso/saml/"))
