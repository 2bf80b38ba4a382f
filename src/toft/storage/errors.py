"""Pure: what Storage answers when it refuses: a closed list, and the one place that writes it down.

Almost every refusal is sent with HTTP status 400 and names its true status inside the body, as a text, where
clients read it. The few that are sent with their own status say so here.
"""

from __future__ import annotations

import msgspec

from toft.http.message import Response
from toft.pg.sqlstate import PostgresError
from toft.tokens.caller import TokenError, TokenFault

#: statuses that are sent as they are
_SENT_AS_IS = frozenset({416, 429, 500, 503, 544})


class StorageError(Exception):
    """A refusal. `status` is the true one; `sent_status` what the HTTP response has, when it is another."""

    def __init__(
        self, code: str, status: int, error: str, message: str, *, sent_status: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.error = error
        self.message = message
        self.sent_status = sent_status or (status if status in _SENT_AS_IS else 400)


def no_such_bucket() -> StorageError:
    return StorageError("NoSuchBucket", 404, "Bucket not found", "Bucket not found")


def no_such_key() -> StorageError:
    return StorageError("NoSuchKey", 404, "not_found", "Object not found")


def bytes_are_gone() -> StorageError:
    """The row is there, the bytes are not: a seed made it, or they were lost."""
    return StorageError("NoSuchKey", 404, "Not found", "The resource was not found")


def already_exists(code: str = "KeyAlreadyExists") -> StorageError:
    return StorageError(code, 409, "Duplicate", "The resource already exists")


def bucket_not_empty() -> StorageError:
    message = "The bucket you tried to delete is not empty"
    return StorageError("ResourceNotEmpty", 409, "ResourceNotEmpty", message)


def invalid_bucket_name() -> StorageError:
    return StorageError("InvalidBucketName", 400, "Invalid Input", "Bucket name invalid")


def invalid_key(key: str) -> StorageError:
    return StorageError("InvalidKey", 400, "InvalidKey", f"Invalid key: {key}")


def unsupported_type(kind: str) -> StorageError:
    return StorageError("InvalidMimeType", 415, "invalid_mime_type", f"mime type {kind} is not supported")


def invalid_content_type() -> StorageError:
    return StorageError("InvalidMimeType", 415, "invalid_mime_type", "Invalid Content-Type header")


def too_large() -> StorageError:
    message = "The object exceeded the maximum allowed size"
    return StorageError("EntityTooLarge", 413, "Payload too large", message)


def access_denied(message: str = "Access denied") -> StorageError:
    return StorageError("AccessDenied", 403, "Unauthorized", message)


def wrong_role() -> StorageError:
    """The one refusal for a role that is sent as a real 403."""
    message = "Access denied: Invalid role"
    return StorageError("AccessDenied", 403, "Unauthorized", message, sent_status=403)


def invalid_token(message: str) -> StorageError:
    """The token of a signed URL does not verify."""
    return StorageError("InvalidJWT", 400, "InvalidJWT", message)


def invalid_signature(message: str = "Invalid signature") -> StorageError:
    return StorageError("InvalidSignature", 400, "InvalidSignature", message)


def invalid_range() -> StorageError:
    return StorageError("InvalidRange", 416, "invalid_range", "invalid range provided")


def invalid_request(message: str, error: str = "Error") -> StorageError:
    return StorageError("InvalidRequest", 400, error, message)


def invalid_parameter(message: str) -> StorageError:
    return StorageError("InvalidParameter", 400, "InvalidParameter", f"Invalid Parameter {message}")


def feature_not_enabled(name: str) -> StorageError:
    message = f"The feature {name} is not enabled for this resource"
    return StorageError("FeatureNotEnabled", 409, "FeatureNotEnabled", message)


def no_route(method: str, path: str) -> StorageError:
    message = f"Route {method}:{path} not found"
    return StorageError("InvalidRequest", 404, "Not Found", message, sent_status=404)


def disk_full() -> StorageError:
    message = "There is no room left to store the object"
    return StorageError("InternalError", 507, "InternalError", message, sent_status=507)


def database_is_away() -> StorageError:
    message = "The connection to the database was lost"
    return StorageError("DatabaseError", 503, "DatabaseError", message)


_TOKEN_WORDS = {
    TokenFault.EMPTY: "Invalid Compact JWS",
    TokenFault.PARTS: "Invalid Compact JWS",
    TokenFault.NO_KEY: "signature verification failed",
    TokenFault.ALGORITHM: '"alg" (Algorithm) Header Parameter value not allowed',
    TokenFault.UNSECURED: '"alg" (Algorithm) Header Parameter value not allowed',
    TokenFault.ENCRYPTED: "Invalid Compact JWS",
    TokenFault.CLAIMS: "JWT Claims Set must be a top-level JSON object",
    TokenFault.EXPIRED: '"exp" claim timestamp check failed',
    TokenFault.NOT_YET_VALID: '"nbf" claim timestamp check failed',
    TokenFault.ISSUED_IN_FUTURE: '"iat" claim timestamp check failed',
    TokenFault.AUDIENCE_TYPE: 'unexpected "aud" claim value',
    TokenFault.AUDIENCE: 'unexpected "aud" claim value',
}


def word_token_error(error: TokenError | None) -> str:
    """The words of upstream's token library. None: no token was sent at all."""
    if error is None:
        return "Invalid Compact JWS"
    if error.fault is TokenFault.CRYPTO:
        is_header = error.detail == "header"
        return "JWS Protected Header is invalid" if is_header else "signature verification failed"
    if error.fault is TokenFault.CLAIM_TYPE:
        return f'"{error.detail}" claim must be a number'
    return _TOKEN_WORDS[error.fault]


def from_postgres(error: PostgresError) -> StorageError:
    """What the database refused, in Storage's words."""
    match error.sqlstate:
        case "42501":
            return access_denied(error.message.partition(" for table ")[0])
        case "23505":
            return already_exists("ResourceAlreadyExists")
        case "23503" if "still referenced" in (error.detail or ""):
            return StorageError("ResourceReferenced", 409, "ResourceReferenced", error.message)
        case "23503":
            message = "The related resource does not exist"
            return StorageError("InvalidRequest", 404, "InvalidRequest", message)
        case "55P03":
            return StorageError("ResourceLocked", 423, "ResourceLocked", "The resource is locked")
        case "57014":
            message = "The connection to the database timed out"
            return StorageError("DatabaseTimeout", 544, "DatabaseTimeout", message)
        case "22P02":
            return invalid_parameter(error.message)
        case "42703" | "42P01":
            return StorageError("DatabaseSchemaMismatch", 503, "DatabaseSchemaMismatch", error.message)
        case "25006":
            return StorageError("DatabaseReadOnly", 503, "DatabaseReadOnly", error.message)
        case "53300":
            return StorageError("TooManyConnections", 429, "TooManyConnections", "Too many connections")
        case state:
            message = f"database error, code: {state}"
            return StorageError("DatabaseError", 500, "DatabaseError", message)


def render(error: StorageError) -> Response:
    """The answer to a refused request."""
    body = {
        "statusCode": str(error.status),
        "error": error.error,
        "message": error.message,
        "code": error.code,
    }
    headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"cache-control", b"no-store"),
    ]
    return Response(error.sent_status, headers, msgspec.json.encode(body))
