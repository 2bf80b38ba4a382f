"""Pure: an error of Postgres as the Data API answers it: status by SQLSTATE, texts as they are."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from toft.pg.sqlstate import PostgresError
from toft.rest.errors import RestError, malformed_raise, not_singular, put_mismatch, too_many_affected
from toft.rest.render.statement import ALARM

_ALARM_SQLSTATE: Final = "22P02"
#: whole codes, before their classes are looked at
_BY_CODE: Final = {
    "23503": 409,
    "23505": 409,
    "25006": 405,
    "42P01": 404,
    "42P17": 500,
    "53400": 500,
    "57P01": 503,
    "P0001": 400,
}
_BY_CLASS: Final = {
    "08": 503,
    "53": 503,
    "0L": 403,
    "0P": 403,
    "28": 403,
    **dict.fromkeys(
        ("09", "25", "2D", "38", "39", "3B", "40", "54", "55", "57", "58", "F0", "HV", "XX", "P0"), 500
    ),
}


def from_postgres(error: PostgresError, *, is_anonymous: bool) -> RestError:
    """The answer to this error for a caller who is, or is not, the anonymous role."""
    code = error.sqlstate
    if code == _ALARM_SQLSTATE and (alarm := ALARM.search(error.message)) is not None:
        return _alarm(alarm[1], int(alarm[2]))
    if code == "PGRST":
        return _raised(error)
    status, status_text = _status(error, is_anonymous)
    headers = [(b"www-authenticate", b"Bearer")] if status == 401 else []
    if status == 503:
        headers.append((b"retry-after", b"1"))
    return RestError(
        status,
        code,
        error.message,
        details=error.detail,
        hint=error.hint,
        headers=headers,
        status_text=status_text,
    )


def _alarm(code: str, rows: int) -> RestError:
    if code == "PGRST115":
        return put_mismatch()
    return not_singular(rows) if code == "PGRST116" else too_many_affected(rows)


def _status(error: PostgresError, is_anonymous: bool) -> tuple[int, str | None]:
    code, message = error.sqlstate, error.message
    match code:
        case "21000":
            return (400 if message.endswith("requires a WHERE clause") else 500), None
        case "22023":
            is_role = message.startswith("role") and message.endswith("does not exist")
            return (401 if is_role else 400), None
        case "42883":
            return (406 if message.startswith("function xmlagg(") else 404), None
        case "42501":
            return (401 if is_anonymous else 403), None
        case _ if code.startswith("PT"):
            wished = code[2:]
            return (int(wished), message) if wished.isdigit() and 100 <= int(wished) <= 999 else (500, None)
        case _:
            return _BY_CODE.get(code) or _BY_CLASS.get(code[:2], 400), None


# --- RAISE SQLSTATE 'PGRST' -----------------------------------------------------------------------------

_MESSAGE_HINT = (
    "MESSAGE must be a JSON object with obligatory keys: 'code', 'message' and optional keys: "
    "'details', 'hint'."
)
_DETAIL_HINT = (
    "DETAIL must be a JSON object with obligatory keys: 'status', 'headers' and optional key: 'status_text'."
)


class _Message(msgspec.Struct):
    code: str
    message: str
    details: str | None = None
    hint: str | None = None


class _Detail(msgspec.Struct):
    status: int
    headers: dict[str, str]
    status_text: str | None = None


def _decode[T](raw: str, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _raised(error: PostgresError) -> RestError:
    """The function that raised this says the whole answer."""
    message: Any = _decode(error.message, _Message)
    if message is None:
        return malformed_raise(f"Invalid JSON value for MESSAGE: '{error.message}'", _MESSAGE_HINT)
    if error.detail is None:
        return malformed_raise("DETAIL is missing in the RAISE statement", _DETAIL_HINT)
    detail = _decode(error.detail, _Detail)
    if detail is None:
        return malformed_raise(f"Invalid JSON value for DETAIL: '{error.detail}'", _DETAIL_HINT)
    headers = sorted((name.lower().encode(), value.encode()) for name, value in detail.headers.items())
    return RestError(
        detail.status,
        message.code,
        message.message,
        details=message.details,
        hint=message.hint,
        headers=headers,
        status_text=detail.status_text,
    )
