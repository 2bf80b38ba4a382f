"""Pure: names of buckets and objects, sizes, and content types: what is allowed and what matches."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toft.storage.errors import (
    invalid_bucket_name,
    invalid_content_type,
    invalid_key,
    unsupported_type,
)

#: the last segment of the object that stands for an empty folder
FOLDER_MARK = ".emptyFolderPlaceholder"
DEFAULT_TYPE = "application/octet-stream"
LONGEST_KEY_BYTES = 1024

_KEY = re.compile(r"[A-Za-z0-9_/!\-.*'() &$=@;:+,?]+")
_BUCKET = re.compile(r"[A-Za-z0-9_!\-.*'() &$=@;:+,?]{1,100}")
_RESERVED_SUFFIX = "--table-s3"
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(gb|mb|kb|b)", re.IGNORECASE)
_UNITS = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3}
_MEDIA_TYPE = re.compile(r"\s*([A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+)\s*(?:;.*)?", re.DOTALL)
_RULE = re.compile(r"(?:\*|[A-Za-z0-9\-+.]+/(?:\*|[A-Za-z0-9\-+.]+))(?:\s*;\s*charset=[A-Za-z0-9\-]+)?")


def check_bucket_name(name: str) -> None:
    """Raise for a name that no bucket may have."""
    if not _BUCKET.fullmatch(name) or name != name.strip() or name.endswith(_RESERVED_SUFFIX):
        raise invalid_bucket_name()


def check_key(key: str) -> str:
    """The key as it is stored. Raises for one that no object may have.

    A leading slash of the route's own is gone by then; one more is part of the key.
    """
    if not _KEY.fullmatch(key) or len(key) > LONGEST_KEY_BYTES:
        raise invalid_key(key)
    if any(segment in (".", "..") for segment in key.split("/")):
        raise invalid_key(key)
    return key


def is_folder_mark(key: str) -> bool:
    """Whether this object only keeps an empty folder visible."""
    return key.rpartition("/")[2] == FOLDER_MARK


def parse_size(text: str) -> int | None:
    """Bytes of a size like `20MB` (decimal units); None for what is none.

    >>> parse_size("20MB"), parse_size("1.5 kb"), parse_size("12"), parse_size("x")
    (20000000, 1500, 12, None)
    """
    if text.isascii() and text.isdecimal():
        return int(text)
    found = _SIZE.fullmatch(text.strip())
    return int(float(found[1]) * _UNITS[found[2].lower()]) if found is not None else None


def is_type_rule(rule: str) -> bool:
    """Whether a bucket may have this among its allowed types: `type/subtype`, `type/*` or `*`."""
    return len(rule) <= 1000 and _RULE.fullmatch(rule) is not None


def read_content_type(header: str) -> str:
    """The media type of a Content-Type header, as it was written. Raises for what is none."""
    if _MEDIA_TYPE.fullmatch(header) is None:
        raise invalid_content_type()
    return header.strip()


def check_type(content_type: str, allowed: Sequence[str] | None) -> None:
    """Raise unless a bucket's rules allow this type. What was declared counts, nothing is sniffed."""
    if not allowed:
        return
    found = _MEDIA_TYPE.fullmatch(content_type)
    kind, _, subtype = (found[1].lower() if found else content_type.lower()).partition("/")
    for rule in allowed:
        wanted, _, wanted_subtype = rule.partition(";")[0].strip().lower().partition("/")
        if wanted == "*" or (wanted == kind and wanted_subtype in ("*", subtype)):
            return
    raise unsupported_type(content_type)


def smaller_limit(bucket_limit: int | None, global_limit: int) -> int:
    """How large an object may be."""
    return global_limit if bucket_limit is None else min(bucket_limit, global_limit)
