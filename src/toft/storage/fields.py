"""Pure: reading members of a JSON body or a query as strictly, and as leniently, as upstream's schemas do.

Numbers and booleans may come as texts. Words of a refusal are those of a JSON schema validator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from toft.storage.errors import invalid_request


def parse_object(raw: bytes) -> dict[str, Any]:
    """A JSON object, or none at all (empty)."""
    if not raw.strip():
        return {}
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise invalid_request("Body is not valid JSON") from None
    if not isinstance(value, dict):
        raise invalid_request("body must be object")
    return cast("dict[str, Any]", value)


def read_text(members: Mapping[str, Any], name: str, where: str = "body") -> str | None:
    """A text; numbers and booleans count as their text. None when absent or null."""
    value = members.get(name)
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise invalid_request(f"{where}/{name} must be string")
    if "\0" in value:
        raise invalid_request(f"{where}/{name} must not contain NUL")
    return value


def require_text(members: Mapping[str, Any], name: str, where: str = "body") -> str:
    """A text that has to be there."""
    value = read_text(members, name, where)
    if value is None:
        raise invalid_request(f"{where} must have required property '{name}'")
    return value


def read_int(
    members: Mapping[str, Any], name: str, *, least: int | None = None, where: str = "body"
) -> int | None:
    """An integer; `"60"` is one."""
    value = members.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, str):
        digits = value.removeprefix("-")
        value = int(value) if digits.isascii() and digits.isdecimal() and len(digits) < 19 else value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid_request(f"{where}/{name} must be integer")
    if least is not None and value < least:
        raise invalid_request(f"{where}/{name} must be >= {least}")
    return value


def require_int(members: Mapping[str, Any], name: str, *, least: int | None = None) -> int:
    """An integer that has to be there."""
    value = read_int(members, name, least=least)
    if value is None:
        raise invalid_request(f"body must have required property '{name}'")
    return value


def read_bool(members: Mapping[str, Any], name: str) -> bool | None:
    """A boolean; `"true"` is one."""
    value = members.get(name)
    if value is None or isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise invalid_request(f"body/{name} must be boolean")


def read_object(members: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A nested object; empty when absent."""
    value = members.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid_request(f"body/{name} must be object")
    return cast("dict[str, Any]", value)


def read_texts(members: Mapping[str, Any], name: str) -> list[str] | None:
    """A list of texts; None when absent or null."""
    value = members.get(name)
    if value is None:
        return None
    if not isinstance(value, list):
        raise invalid_request(f"body/{name} must be array")
    for index, item in enumerate(cast("list[object]", value)):
        if not isinstance(item, str) or "\0" in item:
            raise invalid_request(f"body/{name}/{index} must be string")
    return cast("list[str]", value)
