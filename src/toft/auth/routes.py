"""The table of Auth's routes. A path is matched exactly; `{name}` stands for one segment."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable

import msgspec

from toft.auth import admin, info, logout, signup, token, user
from toft.auth.call import Call
from toft.http.message import Response

type Endpoint = Callable[[Call], Awaitable[Response]]


class BodyKind(enum.Enum):
    """What an endpoint expects of the body."""

    NONE = "none"
    #: a JSON object must be there
    JSON = "json"
    #: a JSON object, or nothing
    OPTIONAL = "optional"


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
    _route("GET /user", user.read_user),
    _route("PUT /user", user.update_user, BodyKind.JSON),
    _route("POST /logout", logout.logout, BodyKind.OPTIONAL),
    _route("GET /admin/users", admin.list_users),
    _route("POST /admin/users", admin.create_user, BodyKind.JSON),
    _route("GET /admin/users/{user_id}", admin.read_user),
    _route("PUT /admin/users/{user_id}", admin.update_user, BodyKind.JSON),
    _route("DELETE /admin/users/{user_id}", admin.delete_user, BodyKind.OPTIONAL),
    _route("GET /admin/audit", admin.list_audit),
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
