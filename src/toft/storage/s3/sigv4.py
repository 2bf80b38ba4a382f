"""Pure: Amazon's signature, version 4: what a request says about its signer, and whether that is true.

Contract: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html
"""

from __future__ import annotations

import hashlib
import hmac
import re
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, unquote, unquote_plus

import msgspec

from toft.http.message import Request
from toft.storage.s3.errors import (
    expired,
    malformed_signature,
    missing_signature,
    skewed_time,
    wrong_signature,
)

ALGORITHM: Final = "AWS4-HMAC-SHA256"
UNSIGNED: Final = "UNSIGNED-PAYLOAD"
MOST_SKEW_SECONDS: Final = 15 * 60
_LONGEST_LIFE_SECONDS: Final = 7 * 24 * 3600
_PART: Final = re.compile(r"([A-Za-z]+)=([^,]+)")
_SAFE: Final = "-_.~"


class Signed(msgspec.Struct, frozen=True):
    """What a signed request says about itself, not yet believed.

    date: `20261130T120000Z`. scope: `20261130/region/s3/aws4_request`. payload: the digest of the body,
    or one of the words that stand for it. expires_seconds: of a presigned URL.
    """

    access_key_id: str
    scope: str
    date: str
    signed_headers: tuple[str, ...]
    signature: str
    payload: str
    session_token: str | None = None
    expires_seconds: int | None = None

    @property
    def is_presigned(self) -> bool:
        return self.expires_seconds is not None


def read_signed(request: Request) -> Signed:
    """The signature of a request, in its header or else in its query. Raises `StorageError`."""
    header = request.headers.get(b"authorization") or ""
    if header.startswith(ALGORITHM):
        return _read_header(request, header)
    query = dict(_query_pairs(request.query))
    if query.get("X-Amz-Algorithm") == ALGORITHM:
        return _read_query(request, query)
    raise missing_signature()


def verify(signed: Signed, request: Request, secret: str, now: float) -> bytes:
    """Raise unless the request was signed with that secret, and lately. The key, for what follows it."""
    _check_times(signed, now)
    key = derive_key(secret, signed.scope)
    for path in _paths(request.raw_path):
        if is_same(_sign_request(signed, request, path, key), signed.signature):
            return key
    raise wrong_signature()


def derive_key(secret: str, scope: str) -> bytes:
    """The key of one day, region and service."""
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def sign_text(key: bytes, *lines: str) -> str:
    """The signature of lines of text."""
    return hmac.digest(key, "\n".join(lines).encode(), "sha256").hex()


def is_same(expected: str, given: str) -> bool:
    """Whether two signatures are equal, in a time that tells nothing."""
    return hmac.compare_digest(expected.encode(), given.encode())


def parse_credential(credential: str) -> tuple[str, str]:
    """Access key id and scope of a credential. Raises `StorageError`."""
    key_id, _, scope = credential.partition("/")
    parts = scope.split("/")
    if not key_id or len(parts) != 4 or parts[2] != "s3" or parts[3] != "aws4_request":
        raise malformed_signature("Credential must be KEY/DATE/REGION/s3/aws4_request")
    return key_id, scope


def parse_date(date: str) -> float:
    """Seconds since 1970 of `20261130T120000Z`. Raises `StorageError`."""
    try:
        return datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise malformed_signature("the date must look like 20260131T120000Z") from None


def _read_header(request: Request, header: str) -> Signed:
    parts = dict(_PART.findall(header))
    try:
        credential, names, signature = parts["Credential"], parts["SignedHeaders"], parts["Signature"]
    except KeyError as error:
        raise malformed_signature(f"{error.args[0]} is missing") from None
    key_id, scope = parse_credential(credential.strip())
    date = request.headers.get(b"x-amz-date") or ""
    return Signed(
        access_key_id=key_id,
        scope=scope,
        date=date,
        signed_headers=tuple(names.strip().lower().split(";")),
        signature=signature.strip(),
        payload=request.headers.get(b"x-amz-content-sha256") or UNSIGNED,
        session_token=request.headers.get(b"x-amz-security-token"),
    )


def _read_query(request: Request, query: dict[str, str]) -> Signed:
    key_id, scope = parse_credential(query.get("X-Amz-Credential", ""))
    seconds = query.get("X-Amz-Expires", "")
    if not seconds.isascii() or not seconds.isdecimal() or not 0 < int(seconds[:9]) <= _LONGEST_LIFE_SECONDS:
        raise malformed_signature("X-Amz-Expires must be between 1 and 604800 seconds")
    payload = query.get("X-Amz-Content-Sha256") or request.headers.get(b"x-amz-content-sha256")
    return Signed(
        access_key_id=key_id,
        scope=scope,
        date=query.get("X-Amz-Date", ""),
        signed_headers=tuple(query.get("X-Amz-SignedHeaders", "").lower().split(";")),
        signature=query.get("X-Amz-Signature", ""),
        payload=UNSIGNED if request.method in ("GET", "HEAD") or not payload else payload,
        session_token=query.get("X-Amz-Security-Token"),
        expires_seconds=int(seconds),
    )


def _check_times(signed: Signed, now: float) -> None:
    at = parse_date(signed.date)
    if signed.scope.partition("/")[0] != signed.date[:8]:
        raise malformed_signature("the credential is of another day than the date")
    if at - now > MOST_SKEW_SECONDS:
        raise skewed_time()
    if signed.expires_seconds is not None:
        if now > at + signed.expires_seconds:
            raise expired()
    elif now - at > MOST_SKEW_SECONDS:
        raise skewed_time()


def _sign_request(signed: Signed, request: Request, path: str, key: bytes) -> str:
    lines = [
        request.method,
        path,
        _canonical_query(request.query),
        *(f"{name}:{_header_value(request, name)}" for name in signed.signed_headers),
        "",
        ";".join(signed.signed_headers),
        signed.payload,
    ]
    digest = hashlib.sha256("\n".join(lines).encode("latin-1", "replace")).hexdigest()
    return sign_text(key, ALGORITHM, signed.date, signed.scope, digest)


def _paths(raw: str) -> list[str]:
    """The path as it was sent, and as it is sent by those who escape as little as they can."""
    escaped = quote(unquote(raw), safe=f"/{_SAFE}")
    return [raw] if escaped == raw else [raw, escaped]


def _header_value(request: Request, name: str) -> str:
    values = request.headers.get_all(name.encode())
    if not values and name == "content-length":
        return "0"
    return ",".join(" ".join(value.split()) for value in values)


def _query_pairs(query: str) -> list[tuple[str, str]]:
    pairs = [part.partition("=") for part in query.split("&") if part]
    return [(unquote(name), unquote(value)) for name, _, value in pairs]


def _canonical_query(query: str) -> str:
    pairs = [part.partition("=") for part in query.split("&") if part]
    plain = [(unquote_plus(name), unquote_plus(value)) for name, _, value in pairs]
    encoded = sorted(
        (quote(name, safe=_SAFE), quote(value, safe=_SAFE))
        for name, value in plain
        if name != "X-Amz-Signature"
    )
    return "&".join(f"{name}={value}" for name, value in encoded)
