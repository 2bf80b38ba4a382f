"""Pure: the JSON body as rows with types."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from toft.rest.render.fragment import Parameters, ident, text


class PayloadColumn(msgspec.Struct, frozen=True):
    """A key of the body: its type in a record, the function from json to it, its default's expression."""

    name: str
    type: str
    convert: str | None = None
    default: str | None = None


#: the body as rows, as error texts show it
BODY = "pgrst_body"


def payload_rows(
    columns: Sequence[PayloadColumn],
    parameters: Parameters,
    *,
    is_object: bool,
    fills_defaults: bool = False,
    first_only: bool = False,
) -> str:
    """A FROM list whose last item, `pgrst_body`, has the body's rows. Absent keys are null or defaults."""
    kind = "jsonb" if fills_defaults else "json"
    value = "pgrst_payload.json_data"
    items = [f"(SELECT {parameters.body()}::{kind} AS json_data) pgrst_payload"]
    if fills_defaults:
        items.append(_defaults(columns, value, is_object=is_object))
        value = "pgrst_json_defs.val"
    if columns:
        reader = f"{kind}_to_record" if is_object else f"{kind}_to_recordset"
        typed = ", ".join(f"{ident(column.name)} {column.type}" for column in columns)
        source = f"{reader}({value}) AS _({typed})"
    elif is_object:
        source = "(VALUES (1)) _"
    else:
        source = f"{kind}_array_elements({value}) _"
    shown = ", ".join(_converted(column) for column in columns)
    limit = " LIMIT 1" if first_only else ""
    items.append(f"LATERAL (SELECT {shown} FROM {source}{limit}) {BODY}")
    return ", ".join(items)


def _converted(column: PayloadColumn) -> str:
    name = ident(column.name)
    return name if column.convert is None else f"{column.convert}({name}) AS {name}"


def _defaults(columns: Sequence[PayloadColumn], value: str, *, is_object: bool) -> str:
    pairs = [f"{text(column.name)}, {column.default}" for column in columns if column.default is not None]
    defaults = f"jsonb_build_object({', '.join(pairs)})"
    if is_object:
        return f"LATERAL (SELECT {defaults} || {value} AS val) pgrst_json_defs"
    return (
        f"LATERAL (SELECT jsonb_agg({defaults} || elem) AS val FROM jsonb_array_elements({value}) elem)"
        " pgrst_json_defs"
    )
