"""Pure: the expression that makes the answer's body out of the rows, by media type."""

from __future__ import annotations

from typing import Final

from toft.rest.plan.nodes import CustomMaker, Maker
from toft.rest.render.call import SCALAR
from toft.rest.render.fragment import qualified
from toft.rest.schema.model import Routine

#: alias of the rows in the outermost SELECT
ROWS: Final = "result"
_SCALARS: Final = f"{ROWS}.{SCALAR}"


def body(maker: Maker, routine: Routine | None, source: str) -> str:
    """The body. `source` is the name of the CTE that has the rows, for those who look twice."""
    if isinstance(maker, CustomMaker):
        return _custom(maker, routine)
    match maker.kind:
        case "none":
            return "''::text"
        case "csv":
            return _csv(source)
        case "geojson":
            features = f"coalesce(json_agg(ST_AsGeoJSON({ROWS})::json), '[]')"
            return f"json_build_object('type', 'FeatureCollection', 'features', {features})"
        case _:
            return _json(maker, routine)


def _json(maker: Maker, routine: Routine | None) -> str:
    is_scalar = routine is not None and (
        routine.returns_scalar or (routine.returns_scalars and maker.kind == "json")
    )
    rows = f"json_agg({_SCALARS if is_scalar else ROWS})"
    is_single = maker.kind == "single" or (
        routine is not None and (routine.returns_scalar or routine.returns_row)
    )
    value = f"{rows}->0" if is_single else rows
    if maker.nulls_stripped:
        value = f"json_strip_nulls({value})"
    return f"coalesce({value}, '{'null' if is_single else '[]'}')"


def _csv(source: str) -> str:
    """Names of the first row's columns, then each row in Postgres' own notation without its parentheses."""
    header = (
        "(SELECT coalesce(string_agg(k.name, ','), '') FROM (SELECT json_object_keys(r.row) AS name"
        f" FROM (SELECT row_to_json(s) AS row FROM {source} s LIMIT 1) r) k)"
    )
    line = f"substring({ROWS}::text, 2, length({ROWS}::text) - 2)"
    return f"{header} || E'\\n' || coalesce(string_agg({line}, E'\\n'), '')"


def _custom(maker: CustomMaker, routine: Routine | None) -> str:
    made_by = qualified(maker.function)
    if routine is not None and routine.returns_scalar:
        return f"{made_by}({_SCALARS})"
    if maker.target is None:
        return f"{made_by}({ROWS})"
    return f"{made_by}({ROWS}::{qualified(maker.target)})"
