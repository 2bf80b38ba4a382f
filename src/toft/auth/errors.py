"""Pure: what Auth answers when it refuses, in upstream's two body shapes.

`AuthError` carries status, code and message; `render` is the one place that writes it down. Server errors are
only for faults of ours or of the user's own SQL: SDKs hide them and try again.
"""

from __future__ import annotations

from typing import Any, Self

import msgspec

from toft.http.message import HeaderList, Response
from toft.pg.sqlstate import PostgresError

#: requests that name this version or a later one get the newer body
NEWER_SHAPE_SINCE = "2024-01-01"

_SHOWN_SQLSTATES = frozenset({"P0001", "23000", "23001", "23502", "23503", "23505", "23514", "23P01"})


class AuthError(Exception):
    """A refusal. `code` is one of upstream's error codes.

    extra: members beside code and message. keeps_writes: the transaction is committed all the same.
    cause: the database's own error, for the log and for holders of the secret key.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        extra: dict[str, Any] | None = None,
        cause: PostgresError | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.extra = extra or {}
        self.cause = cause
        self.keeps_writes = False

    def keeping_writes(self) -> Self:
        """The same refusal, with what was written so far committed."""
        self.keeps_writes = True
        return self


class OAuthError(Exception):
    """A refusal in OAuth's words; always 400, in one shape."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error = error
        self.description = description


class ApiKeyRefused(Exception):
    """The door's own refusal: the API key is not this project's."""


def bad_request(message: str, code: str = "validation_failed") -> AuthError:
    """400: the request itself makes no sense."""
    return AuthError(400, code, message)


def unprocessable(code: str, message: str) -> AuthError:
    """422: understood, but not possible."""
    return AuthError(422, code, message)


def forbidden(code: str, message: str) -> AuthError:
    """403: with this token, not."""
    return AuthError(403, code, message)


def not_found(code: str, message: str) -> AuthError:
    """404: nothing there, or switched off."""
    return AuthError(404, code, message)


def too_soon(code: str, message: str) -> AuthError:
    """429: once more later."""
    return AuthError(429, code, message)


def weak_password(message: str, reasons: list[str]) -> AuthError:
    """422 with the reasons that SDKs show."""
    return AuthError(422, "weak_password", message, extra={"weak_password": {"reasons": reasons}})


def database_failure(message: str, cause: PostgresError) -> AuthError:
    """500: a statement failed, most often in a trigger of the user's own."""
    return AuthError(500, "unexpected_failure", message, cause=cause)


def describe_cause(cause: PostgresError) -> str:
    """Where and why the database refused, on one line: message, SQLSTATE, function and line."""
    parts = [f"{cause.message} (SQLSTATE {cause.sqlstate})", cause.detail, cause.hint, cause.where]
    return " | ".join(" ".join(part.split()) for part in parts if part)


def render(error: AuthError, api_version: str | None, *, shows_cause: bool = False) -> Response:
    """The answer to a refused request. `shows_cause`: the caller holds the secret key."""
    headers: HeaderList = [
        (b"content-type", b"application/json"),
        (b"x-sb-error-code", error.code.encode()),
    ]
    if shows_cause and error.cause is not None:
        headers.append((b"x-toft-cause", describe_cause(error.cause).encode("ascii", "backslashreplace")))
    if is_newer(api_version):
        headers.append((b"x-supabase-api-version", NEWER_SHAPE_SINCE.encode()))
        body: dict[str, Any] = {"code": error.code, "message": error.message, **error.extra}
        return Response(error.status, headers, msgspec.json.encode(body))
    if error.cause is not None and (shown := _shown_cause(error.cause)) is not None:
        return Response(shown[0], headers, msgspec.json.encode(shown[1]))
    body = {"code": error.status, "error_code": error.code, "msg": error.message, **error.extra}
    return Response(error.status, headers, msgspec.json.encode(body))


def render_oauth(error: OAuthError) -> Response:
    """The answer in OAuth's shape."""
    body = {"error": error.error, "error_description": error.description}
    return Response(400, [(b"content-type", b"application/json")], msgspec.json.encode(body))


def render_api_key_refused() -> Response:
    """What the hosted door says to a wrong key."""
    body = {"message": "Invalid API key", "hint": "This key does not belong to this project."}
    return Response(401, [(b"content-type", b"application/json")], msgspec.json.encode(body))


def is_newer(api_version: str | None) -> bool:
    """Whether the caller asked for the newer error body. What is no date counts as absent."""
    if api_version is None or len(api_version) != 10:
        return False
    year, month, day = api_version[:4], api_version[5:7], api_version[8:]
    if api_version[4] + api_version[7] != "--" or not (year + month + day).isdecimal():
        return False
    return api_version >= NEWER_SHAPE_SINCE and "01" <= month <= "12" and "01" <= day <= "31"


def _shown_cause(cause: PostgresError) -> tuple[int, dict[str, Any]] | None:
    """In the older shape, an error that the user's own SQL raised is passed on; PTxyz names the status."""
    state = cause.sqlstate
    is_status = state.startswith("PT") and state[2:].isdecimal() and "400" <= state[2:] <= "599"
    if not is_status and state not in _SHOWN_SQLSTATES:
        return None
    body = {"code": state, "message": cause.message, "hint": cause.hint or "", "detail": cause.detail or ""}
    return int(state[2:]) if is_status else 500, body
