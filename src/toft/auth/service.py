"""The spine of Auth: a request goes to its route, and whatever is refused on the way is worded here."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from toft.auth.call import Call, parse_body
from toft.auth.context import AuthContext
from toft.auth.errors import (
    AuthError,
    OAuthError,
    bad_request,
    database_failure,
    describe_cause,
    render,
    render_api_key_refused,
    render_oauth,
)
from toft.auth.routes import BodyKind, Match, find_route
from toft.http.message import BodyTooLarge, Request, Response
from toft.pg.sqlstate import ConnectionLost, PostgresError, Unreachable
from toft.tokens.caller import Caller, Refusal

LARGEST_BODY = 1024 * 1024
#: a whole request, however many steps it has
LONGEST_SECONDS = 10


class AuthService:
    """One backend's Auth."""

    def __init__(self, context: AuthContext) -> None:
        self._context = context

    async def handle(self, request: Request, caller: Caller | Refusal, path: str) -> Response:
        """Answer a request. `path` is what follows `/auth/v1`."""
        if isinstance(caller, Refusal):
            return render_api_key_refused()
        match = find_route(request.method, path)
        if not isinstance(match, Match):
            return _no_route(match)
        api_version = request.headers.get(b"x-supabase-api-version")
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                return await self._answer(request, caller, match, path)
        except AuthError as error:
            return self._refuse(error, caller, path, api_version)
        except OAuthError as error:
            return render_oauth(error)
        except PostgresError as error:
            failure = database_failure("Database error", error)
            return self._refuse(failure, caller, path, api_version)
        except (ConnectionLost, Unreachable) as error:
            self._context.report(f"auth {path}: {error}")
            away = AuthError(503, "unexpected_failure", "The connection to the database was lost")
            return self._refuse(away, caller, path, api_version)
        except TimeoutError:
            late = AuthError(504, "request_timeout", "Processing this request timed out, please retry")
            return self._refuse(late, caller, path, api_version)

    async def _answer(self, request: Request, caller: Caller, match: Match, path: str) -> Response:
        fields = await _read_fields(request, match.route.body)
        query = dict(parse_qsl(request.query, keep_blank_values=True))
        call = Call(self._context, request, caller, match.variables, query, fields)
        self._context.limits.count_request(call, path)
        return await match.route.endpoint(call)

    def _refuse(self, error: AuthError, caller: Caller, path: str, api_version: str | None) -> Response:
        if error.cause is not None:
            self._context.report(f"auth {path}: {error.message}: {describe_cause(error.cause)}")
        elif error.status >= 500:
            self._context.report(f"auth {path}: {error.message}")
        return render(error, api_version, shows_cause=caller.is_secret_key)


async def _read_fields(request: Request, kind: BodyKind) -> dict[str, Any]:
    if kind is BodyKind.NONE:
        return {}
    try:
        raw = await request.body.read(LARGEST_BODY)
    except BodyTooLarge:
        message = f"Request body exceeds maximum size of {LARGEST_BODY} bytes"
        raise AuthError(413, "request_entity_too_large", message) from None
    if not raw.strip():
        if kind is not BodyKind.JSON:
            return {}
        raise bad_request("Could not parse request body as JSON: unexpected end of JSON input", "bad_json")
    if kind is BodyKind.FORM and not _is_json(request):
        return dict(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True))
    return parse_body(raw)


def _is_json(request: Request) -> bool:
    return "json" in (request.headers.get(b"content-type") or "").lower()


def _no_route(methods: set[str]) -> Response:
    if not methods:
        return Response(404, [(b"content-type", b"text/plain; charset=utf-8")], b"404 page not found\n")
    body = msgspec.json.encode({"code": 405, "msg": "Method not allowed"})
    headers = [(b"content-type", b"application/json"), (b"allow", ", ".join(sorted(methods)).encode())]
    return Response(405, headers, body)
