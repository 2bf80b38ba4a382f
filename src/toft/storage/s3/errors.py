"""Pure: what the S3 door answers when it refuses: real statuses, and the codes that S3 clients know."""

from __future__ import annotations

from toft.http.message import Response
from toft.storage.errors import StorageError
from toft.storage.s3.xml import XML_TYPE, write_error

#: our code → the one that S3 clients know
_CODES = {
    "ResourceNotEmpty": "BucketNotEmpty",
    "KeyAlreadyExists": "ObjectAlreadyInActiveTierError",
    "TooManyConnections": "SlowDown",
    "DatabaseTimeout": "SlowDown",
    "DatabaseError": "InternalError",
    "InvalidParameter": "InvalidArgument",
}


def s3_error(code: str, status: int, message: str) -> StorageError:
    """A refusal that only this door has."""
    return StorageError(code, status, code, message)


def missing_signature() -> StorageError:
    return s3_error("AccessDenied", 403, "Missing signature")


class WrongSignature(StorageError):
    """It was made with another secret, or for another request."""


def wrong_signature() -> StorageError:
    code = "SignatureDoesNotMatch"
    message = "The request signature we calculated does not match the signature you provided."
    return WrongSignature(code, 403, code, message)


def unknown_key() -> StorageError:
    message = "The access key id you provided does not exist in our records."
    return s3_error("InvalidAccessKeyId", 403, message)


def malformed_signature(what: str) -> StorageError:
    return s3_error("AuthorizationHeaderMalformed", 400, f"The signature is malformed: {what}")


def skewed_time() -> StorageError:
    message = "The difference between the request time and the current time is too large."
    return s3_error("RequestTimeTooSkewed", 403, message)


def expired() -> StorageError:
    return s3_error("AccessDenied", 403, "Request has expired")


def wrong_digest(what: str) -> StorageError:
    return s3_error("BadDigest", 400, f"The {what} you specified did not match what was received.")


def incomplete_body() -> StorageError:
    return s3_error("IncompleteBody", 400, "The body has not as many bytes as were announced.")


def malformed_trailer() -> StorageError:
    return s3_error(
        "MalformedTrailerError", 400, "The request contained trailing data that was not well-formed."
    )


def malformed_xml() -> StorageError:
    return s3_error("MalformedXML", 400, "The XML you provided was not well-formed or not what was expected.")


def invalid_argument(what: str) -> StorageError:
    return s3_error("InvalidArgument", 400, what)


def no_such_upload() -> StorageError:
    return s3_error("NoSuchUpload", 404, "The specified multipart upload does not exist.")


def invalid_part() -> StorageError:
    message = "One or more of the specified parts could not be found, or its ETag did not match."
    return s3_error("InvalidPart", 400, message)


def precondition_failed() -> StorageError:
    return s3_error(
        "PreconditionFailed", 412, "At least one of the preconditions you specified did not hold."
    )


def not_implemented(what: str) -> StorageError:
    return s3_error("NotImplemented", 501, f"{what} is not implemented.")


def no_operation(method: str) -> StorageError:
    message = f"The method {method} is not allowed against this resource."
    return s3_error("MethodNotAllowed", 405, message)


def render_s3(error: StorageError, resource: str, method: str) -> Response:
    """The answer to a refused request: the root has no namespace, or clients read no code."""
    code = _CODES.get(error.code, error.code)
    if method == "HEAD":
        return Response(error.status, [(b"content-length", b"0")])
    return Response(error.status, [XML_TYPE], write_error(code, error.message, resource))
