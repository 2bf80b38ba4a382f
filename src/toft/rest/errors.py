"""Pure: everything that the Data API can answer instead of rows: the closed list of PGRST codes.

One function per fault, which takes facts and words the answer as upstream does, since clients match on it.
Errors of Postgres itself are in `pg_faults.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from toft.tokens.caller import TokenError, TokenFault

if TYPE_CHECKING:
    from toft.http.message import HeaderList

_encode = msgspec.json.Encoder().encode


class RestError(Exception):
    """An answer that is an error. `status_text` replaces the HTTP reason phrase."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        details: Any = None,
        hint: str | None = None,
        headers: Iterable[tuple[bytes, bytes]] = (),
        status_text: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.details = details
        self.hint = hint
        self.headers: HeaderList = list(headers)
        self.status_text = status_text

    def body(self) -> bytes:
        """The JSON that the client gets: always four keys."""
        told = {"code": self.code, "details": self.details, "hint": self.hint, "message": self.message}
        try:
            return _encode(told)
        except UnicodeEncodeError:
            # What is shown back was not UTF-8 when it came.
            return _encode({name: _legible(value) for name, value in told.items()})


def _legible(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


# --- 0xx: the database ----------------------------------------------------------------------------------


def cannot_connect(reason: str) -> RestError:
    return RestError(
        503,
        "PGRST000",
        "Database connection error. Retrying the connection.",
        details=reason,
        headers=[(b"retry-after", b"1")],
    )


def connection_lost(reason: str) -> RestError:
    return RestError(
        503,
        "PGRST001",
        "Database client error. Retrying the connection.",
        details=reason,
        headers=[(b"retry-after", b"1")],
    )


def no_schema_cache() -> RestError:
    return RestError(
        503,
        "PGRST002",
        "Could not query the database for the schema cache. Retrying.",
        headers=[(b"retry-after", b"1")],
    )


def pool_timeout() -> RestError:
    return RestError(504, "PGRST003", "Timed out acquiring connection from connection pool.")


# --- 1xx: the request -----------------------------------------------------------------------------------


def bad_query(position: str, details: str) -> RestError:
    return RestError(400, "PGRST100", position, details=details)


def empty_name() -> RestError:
    return bad_query('"failed to parse name"', "a name in the request is empty")


def method_on_rpc(method: str) -> RestError:
    return RestError(405, "PGRST101", f"Cannot use the {method} method on RPC")


def bad_body(message: str) -> RestError:
    return RestError(400, "PGRST102", message)


def body_too_large(limit: int) -> RestError:
    """Upstream leaves this to what stands before it."""
    return RestError(
        413,
        "TOFT-BODY-TOO-LARGE",
        "The request body is too large",
        details=f"A body may have {limit} bytes.",
        hint="Send less at a time, or raise the limit: TOFT_MAX_BODY, or --max-body of `toft data-api`.",
    )


_UNSATISFIABLE = "Requested range not satisfiable"


def negative_limit() -> RestError:
    return RestError(
        416, "PGRST103", _UNSATISFIABLE, details="Limit should be greater than or equal to zero."
    )


def range_reversed() -> RestError:
    return RestError(
        416,
        "PGRST103",
        _UNSATISFIABLE,
        details="The lower boundary must be lower than or equal to the upper boundary in the Range header.",
    )


def range_beyond(offset: int, total: int) -> RestError:
    details = f"An offset of {offset} was requested, but there are only {total} rows."
    return RestError(416, "PGRST103", _UNSATISFIABLE, details=details)


def put_filters() -> RestError:
    message = "Filters must include all and only primary key columns with 'eq' operators"
    return RestError(405, "PGRST105", message)


def schema_not_exposed(schema: str, exposed: Sequence[str]) -> RestError:
    hint = f"Only the following schemas are exposed: {', '.join(exposed)}"
    return RestError(406, "PGRST106", f"Invalid schema: {schema}", hint=hint)


def not_acceptable(media_types: Iterable[str]) -> RestError:
    return RestError(406, "PGRST107", f"None of these media types are available: {', '.join(media_types)}")


def not_embedded(resource: str) -> RestError:
    return RestError(
        400,
        "PGRST108",
        f"'{resource}' is not an embedded resource in this request",
        hint=f"Verify that '{resource}' is included in the 'select' query parameter.",
    )


def bad_response_headers() -> RestError:
    return RestError(
        500,
        "PGRST111",
        "response.headers guc must be a JSON array composed of objects with a single key and a string value",
    )


def bad_response_status() -> RestError:
    return RestError(500, "PGRST112", "response.status guc must be a valid status code")


def put_limited() -> RestError:
    return RestError(400, "PGRST114", "limit/offset querystring parameters are not allowed for PUT")


def put_mismatch() -> RestError:
    return RestError(400, "PGRST115", "Payload values do not match URL in primary key column(s)")


def not_singular(rows: int) -> RestError:
    return RestError(
        406,
        "PGRST116",
        "Cannot coerce the result to a single JSON object",
        details=f"The result contains {rows} rows",
    )


def unsupported_method(method: str) -> RestError:
    return RestError(405, "PGRST117", f"Unsupported HTTP method: {method}")


def related_order(origin: str, target: str) -> RestError:
    return RestError(
        400,
        "PGRST118",
        f"A related order on '{target}' is not possible",
        details=f"'{origin}' and '{target}' do not form a many-to-one or one-to-one relationship",
    )


def malformed_raise(details: str, hint: str) -> RestError:
    message = "Could not parse JSON in the \"RAISE SQLSTATE 'PGRST'\" error"
    return RestError(500, "PGRST121", message, details=details, hint=hint)


def unknown_preferences(preferences: Iterable[str]) -> RestError:
    return RestError(
        400,
        "PGRST122",
        "Invalid preferences given with handling=strict",
        details=f"Invalid preferences: {', '.join(preferences)}",
    )


def aggregates_disabled() -> RestError:
    return RestError(400, "PGRST123", "Use of aggregate functions is not allowed")


def too_many_affected(rows: int) -> RestError:
    return RestError(
        400,
        "PGRST124",
        "Query result exceeds max-affected preference constraint",
        details=f"The query affects {rows} rows",
    )


def no_such_path() -> RestError:
    return RestError(404, "PGRST125", "Invalid path specified in request URL")


def root_disabled() -> RestError:
    return RestError(404, "PGRST126", "Root endpoint metadata is disabled")


def not_implemented(details: str) -> RestError:
    return RestError(400, "PGRST127", "Feature not implemented", details=details)


def max_affected_on_single() -> RestError:
    return RestError(
        400,
        "PGRST128",
        "Function must return SETOF or TABLE when max-affected preference is used with handling=strict",
    )


# --- 2xx: the schema cache ------------------------------------------------------------------------------

_IN_CACHE = "in the schema cache"


class NotInSchema(RestError):
    """Something that the schema cache does not have: worth a look whether the cache is still true."""


def no_relationship(
    parent: str, child: str, embed_hint: str | None, schema: str, suggestion: str | None
) -> RestError:
    using = f"' using the hint '{embed_hint}" if embed_hint is not None else ""
    return NotInSchema(
        400,
        "PGRST200",
        f"Could not find a relationship between '{parent}' and '{child}' {_IN_CACHE}",
        details=(
            f"Searched for a foreign key relationship between '{parent}' and '{child}{using}' "
            f"in the schema '{schema}', but no matches were found."
        ),
        hint=suggestion,
    )


def ambiguous_relationship(
    parent: str, child: str, candidates: Sequence[dict[str, str]], spellings: Sequence[str]
) -> RestError:
    options = ", ".join(f"'{spelling}'" for spelling in spellings)
    return NotInSchema(
        300,
        "PGRST201",
        f"Could not embed because more than one relationship was found for '{parent}' and '{child}'",
        details=list(candidates),
        hint=(
            f"Try changing '{child}' to one of the following: {options}. "
            "Find the desired relationship in the 'details' key."
        ),
    )


def no_function(
    function: str, keys: Sequence[str], *, unnamed: str | None, is_body_raw: bool, suggestion: str | None
) -> RestError:
    """`unnamed`: the type that a single unnamed parameter would have; `is_body_raw`: it is the only way."""
    listed = ", ".join(keys)
    if is_body_raw:
        called, searched = "", f" with a single unnamed {unnamed} parameter"
    else:
        plural = "s" if len(keys) > 1 else ""
        called = f"({listed})" if keys else " without parameters"
        searched = f" with parameter{plural} {listed}" if keys else " without parameters"
        if unnamed is not None:
            searched += f" or with a single unnamed {unnamed} parameter"
    return NotInSchema(
        404,
        "PGRST202",
        f"Could not find the function {function}{called} {_IN_CACHE}",
        details=(f"Searched for the function {function}{searched}, but no matches were found {_IN_CACHE}."),
        hint=suggestion,
    )


def ambiguous_function(signatures: Iterable[str]) -> RestError:
    return NotInSchema(
        300,
        "PGRST203",
        f"Could not choose the best candidate function between: {', '.join(signatures)}",
        hint=(
            "Try renaming the parameters or the function itself in the database so function overloading "
            "can be resolved"
        ),
    )


def no_column(table: str, column: str) -> RestError:
    return NotInSchema(400, "PGRST204", f"Could not find the '{column}' column of '{table}' {_IN_CACHE}")


def no_table(schema: str, table: str, suggestion: str | None) -> RestError:
    return NotInSchema(
        404, "PGRST205", f"Could not find the table '{schema}.{table}' {_IN_CACHE}", hint=suggestion
    )


# --- 3xx: who asks --------------------------------------------------------------------------------------


def no_jwt_secret() -> RestError:
    return RestError(500, "PGRST300", "Server lacks JWT secret")


def anonymous_disabled() -> RestError:
    return RestError(
        401, "PGRST302", "Anonymous access is disabled", headers=[(b"www-authenticate", b"Bearer")]
    )


_DECODE_FAULTS = {
    TokenFault.EMPTY: "Empty JWT is sent in Authorization header",
    TokenFault.PARTS: "Expected 3 parts in JWT; got {detail}",
    TokenFault.NO_KEY: "No suitable key or wrong key type",
    TokenFault.ALGORITHM: "Wrong or unsupported encoding algorithm",
    TokenFault.UNSECURED: "Wrong or unsupported encoding algorithm",
    TokenFault.CRYPTO: "JWT cryptographic operation failed",
    TokenFault.ENCRYPTED: "Unsupported token type",
}
_CLAIM_FAULTS = {
    TokenFault.CLAIMS: "Parsing claims failed",
    TokenFault.EXPIRED: "JWT expired",
    TokenFault.NOT_YET_VALID: "JWT not yet valid",
    TokenFault.ISSUED_IN_FUTURE: "JWT issued at future",
    TokenFault.CLAIM_TYPE: "The JWT '{detail}' claim must be a number",
    TokenFault.AUDIENCE_TYPE: "The JWT 'aud' claim must be a string or an array of strings",
    TokenFault.AUDIENCE: "JWT not in audience",
}


def bad_token(error: TokenError) -> RestError:
    """A token that does not verify, worded for this service."""
    details = None
    if error.fault in _DECODE_FAULTS:
        code, message = "PGRST301", _DECODE_FAULTS[error.fault]
        if error.fault is TokenFault.UNSECURED:
            details = "JWT is unsecured but expected 'alg' was not 'none'"
        elif error.fault is TokenFault.NO_KEY:
            tried = error.detail == "signature"
            details = (
                f"{'None of the keys was able' if tried else 'No suitable key was found'} to decode the JWT"
            )
    else:
        code, message = "PGRST303", _CLAIM_FAULTS[error.fault]
    message = message.format(detail=error.detail)
    challenge = f'Bearer error="invalid_token", error_description={msgspec.json.encode(message).decode()}'
    return RestError(401, code, message, details=details, headers=[(b"www-authenticate", challenge.encode())])


def filter_required(command: str) -> RestError:
    """What the library safeupdate says on the platform, and we say without it."""
    return RestError(400, "21000", f"{command} requires a WHERE clause")


def internal() -> RestError:
    return RestError(500, "PGRSTX00", "Something went wrong inside the server")
