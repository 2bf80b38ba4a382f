"""Pure: the body's form. JSON bytes go on to Postgres as they came; other types become JSON first."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import msgspec

from toft.rest.errors import bad_body
from toft.rest.parse.filters import to_bytes
from toft.rest.parse.query import split_pairs
from toft.rest.request import Act, Media, Operand, Payload

_objects = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_anything = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode

_NO_ROWS = b"[]"
_BAD_JSON = "Empty or invalid json"
_KEYS_DIFFER = "All object keys must match"
#: types that a function's single unnamed parameter takes whole
_RAW_KINDS = {"text", "xml", "octets"}


def parse_body(
    body: bytes, content: Media, act: Act, columns: Sequence[str] | None, first_slot: int
) -> tuple[Payload | None, bytes, Sequence[bytes]]:
    """The payload's form, the bytes to send, and the values of a form's fields (for calls only).

    Raises `RestError` PGRST102.
    """
    if act not in {Act.INSERT, Act.UPDATE, Act.UPSERT_ONE, Act.CALL}:
        return None, b"", ()
    if content.kind == "json":
        if columns is not None and act is not Act.UPSERT_ONE:
            return Payload(tuple(columns), is_object=body.lstrip()[:1] == b"{"), body, ()
        payload, body = _json(body, is_call=act is Act.CALL)
        return payload, body, ()
    if content.kind == "csv":
        payload, body = _csv(body)
        return payload, body, ()
    if content.kind == "form":
        return _form(body, act, first_slot)
    if content.kind in _RAW_KINDS and act is Act.CALL:
        return Payload(is_raw=True), body, ()
    raise bad_body(f"Content-Type not acceptable: {content.text}")


def _json(body: bytes, *, is_call: bool) -> tuple[Payload, bytes]:
    start = body.lstrip(b" \t\r\n")[:1]
    if not start and is_call:
        return Payload(is_object=True), b"{}"
    try:
        # Values are not looked into, but what is no text shall not reach the database.
        body.decode()
        if start == b"{":
            return Payload(tuple(sorted(_object.decode(body))), is_object=True), body
        if start == b"[":
            return _json_array(body)
        _anything.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_body(_BAD_JSON) from None
    # A scalar counts as no rows.
    return Payload(), _NO_ROWS


def _json_array(body: bytes) -> tuple[Payload, bytes]:
    try:
        rows = _objects.decode(body)
    except msgspec.ValidationError:
        _anything.decode(body)
        raise bad_body(_KEYS_DIFFER) from None
    if not rows:
        return Payload(), _NO_ROWS
    keys = rows[0].keys()
    if any(row.keys() != keys for row in rows):
        raise bad_body(_KEYS_DIFFER)
    return Payload(tuple(sorted(keys))), body


def _csv(body: bytes) -> tuple[Payload, bytes]:
    try:
        lines = [
            line for line in csv.reader(io.StringIO(body.decode("utf-8"), newline=""), strict=True) if line
        ]
    except (csv.Error, UnicodeDecodeError):
        raise bad_body("not enough input") from None
    if not lines:
        raise bad_body("not enough input")
    header, *rows = lines
    if any(len(row) != len(header) for row in rows):
        raise bad_body("All lines must have same number of fields")
    if not rows:
        return Payload(), _NO_ROWS
    objects = [
        {name: None if text == "NULL" else text for name, text in zip(header, row, strict=True)}
        for row in rows
    ]
    return Payload(tuple(sorted(set(header)))), _encode(objects)


def _form(body: bytes, act: Act, first_slot: int) -> tuple[Payload, bytes, Sequence[bytes]]:
    pairs = [(name, value or "") for name, value in split_pairs(body.decode("latin-1"))]
    if act is not Act.CALL:
        fields = dict(pairs)
        try:
            return Payload(tuple(sorted(fields)), is_object=True), _encode(fields), ()
        except UnicodeEncodeError:
            raise bad_body("The form is not UTF-8") from None
    keys = tuple(sorted({name for name, _ in pairs}))
    arguments = tuple((name, Operand("", first_slot + at)) for at, (name, _) in enumerate(pairs))
    return Payload(keys, arguments=arguments), b"", [to_bytes(value) for _, value in pairs]
