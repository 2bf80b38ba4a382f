"""Pure: the header fields of tus, and the addresses of uploads.

Contract: https://tus.io/protocols/resumable-upload (1.0.0), and what Supabase's clients put into
the metadata.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Final

import msgspec

from toft.http.message import HeaderList
from toft.storage.errors import StorageError, invalid_request
from toft.storage.names import check_bucket_name, check_key

VERSION: Final = b"1.0.0"
_METHODS: Final = b"POST, HEAD, PATCH, OPTIONS, DELETE"
_EXTENSIONS: Final = b"creation,creation-with-upload,creation-defer-length,termination,expiration"
_ASKED: Final = (
    b"Authorization, Content-Type, Upload-Length, Upload-Offset, Tus-Resumable, Upload-Metadata, "
    b"Upload-Defer-Length, Upload-Concat, Upload-Expires, X-HTTP-Method-Override, X-Requested-With, "
    b"X-Forwarded-Host, X-Forwarded-Proto, Forwarded, X-Upsert, ApiKey, x-signature, x-client-info, "
    b"cache-control"
)
_EXPOSED: Final = (
    b"Content-Type, Location, Tus-Extension, Tus-Max-Size, Tus-Resumable, Tus-Version, Upload-Concat, "
    b"Upload-Defer-Length, Upload-Length, Upload-Metadata, Upload-Offset, Upload-Expires, Tus-Complete"
)
_LARGEST: Final = 2**53


class Address(msgspec.Struct, frozen=True):
    """What the last segment of an upload's URL says: where the object will be, and the draft's name."""

    bucket: str
    key: str
    name: str


def usual_headers() -> HeaderList:
    """What every answer has."""
    return [
        (b"tus-resumable", VERSION),
        (b"access-control-allow-origin", b"*"),
        (b"access-control-expose-headers", _EXPOSED),
    ]


def capability_headers(max_size: int) -> HeaderList:
    """What the answer to OPTIONS has besides: to the client, and to its browser."""
    return [
        (b"tus-version", VERSION),
        (b"tus-extension", _EXTENSIONS),
        (b"tus-max-size", str(max_size).encode()),
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", _ASKED),
        (b"access-control-max-age", b"86400"),
    ]


def write_address(address: Address) -> str:
    """The last segment of an upload's URL."""
    text = f"{address.bucket}/{address.key}/{address.name}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_address(segment: str) -> Address:
    """What was written. Raises `StorageError` (404) for anything else."""
    try:
        text = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)).decode()
    except (binascii.Error, ValueError):
        raise no_upload() from None
    bucket, _, rest = text.partition("/")
    key, _, name = rest.rpartition("/")
    if not name:
        raise no_upload()
    try:
        check_bucket_name(bucket)
        check_key(key)
    except StorageError:
        raise no_upload() from None
    return Address(bucket, key, name)


def parse_metadata(header: str | None) -> dict[str, str]:
    """`Upload-Metadata`: names and values in base64. Raises `StorageError` for what is malformed.

    >>> parse_metadata("bucketName dGhpbmdz, empty")
    {'bucketName': 'things', 'empty': ''}
    """
    metadata: dict[str, str] = {}
    for part in (header or "").split(","):
        name, _, encoded = part.strip().partition(" ")
        if not name and not encoded:
            continue
        try:
            value = base64.b64decode(encoded.strip(), validate=True).decode()
        except (binascii.Error, ValueError):
            raise invalid_request("Upload-Metadata is invalid") from None
        if not name or name in metadata or "\0" in value:
            raise invalid_request("Upload-Metadata is invalid")
        metadata[name] = value
    return metadata


def parse_length(length: str | None, deferred: str | None) -> int | None:
    """How many bytes there will be; None when that is said later. One of the two fields must be there."""
    if (length is None) == (deferred is None):
        raise invalid_request("Upload-Length or Upload-Defer-Length header is required")
    if length is None:
        if deferred != "1":
            raise invalid_request("Upload-Defer-Length must be 1")
        return None
    return parse_number(length, "Upload-Length")


def parse_number(text: str, name: str) -> int:
    """A count of bytes."""
    if not text.isascii() or not text.isdecimal() or len(text) > 16 or int(text) > _LARGEST:
        raise invalid_request(f"{name} is invalid")
    return int(text)


def write_instant(unix: float) -> bytes:
    """A moment as HTTP writes it."""
    return format_datetime(datetime.fromtimestamp(int(unix), UTC), usegmt=True).encode()


def no_upload() -> StorageError:
    return StorageError("NoSuchUpload", 404, "NoSuchUpload", "The file for this url was not found")


def upload_is_gone() -> StorageError:
    return StorageError("NoSuchUpload", 410, "NoSuchUpload", "The upload has expired")


def wrong_offset() -> StorageError:
    return StorageError("InvalidRequest", 409, "InvalidRequest", "Upload-Offset conflict")


def missing_offset() -> StorageError:
    return StorageError("InvalidRequest", 403, "InvalidRequest", "Upload-Offset header required")


def too_many_bytes() -> StorageError:
    return StorageError("EntityTooLarge", 413, "Payload too large", "Maximum size exceeded")


def wrong_version() -> StorageError:
    message = "Tus-Resumable Required, this server speaks 1.0.0"
    return StorageError("InvalidRequest", 412, "InvalidRequest", message)


def is_locked() -> StorageError:
    return StorageError("ResourceLocked", 423, "ResourceLocked", "The upload is in use by another request")
