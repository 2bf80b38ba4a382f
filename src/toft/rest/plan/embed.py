"""Pure: which relationship an embed means, and the errors when it is none or more than one."""

from __future__ import annotations

from collections.abc import Sequence

from toft.rest.errors import ambiguous_relationship, no_relationship
from toft.rest.plan.suggest import LOOSE, closest, closest_other
from toft.rest.schema.model import Cardinality, Name, Relationship, SchemaCache


def find_relationship(
    schema: SchemaCache, in_schema: str, origin: str, target: str, hint: str | None
) -> Relationship:
    """The one relationship from `origin` that `target` and `hint` name. Raises PGRST200 or PGRST201."""
    known = schema.relationships.get(Name(in_schema, origin), ())
    candidates = [
        relationship
        for relationship in known
        if relationship.target.schema == in_schema and _is_meant(relationship, target, hint)
    ]
    match candidates:
        case [relationship]:
            return relationship
        case []:
            suggestion = _suggest(schema, in_schema, origin, target)
            raise no_relationship(origin, target, hint, in_schema, suggestion)
        case _:
            details = [_describe(candidate) for candidate in candidates]
            raise ambiguous_relationship(origin, target, details, [_spell(c) for c in candidates])


def _is_meant(relationship: Relationship, target: str, hint: str | None) -> bool:
    if relationship.function is not None:
        return target == relationship.function.name
    if relationship.is_self:
        return _is_meant_self(relationship, target, hint)
    if hint is None:
        return target == relationship.target.name or (
            not relationship.is_target_view
            and (target == relationship.constraint != "" or target == _only_column(relationship, 0))
        )
    return target == relationship.target.name and (
        hint == relationship.constraint != ""
        or hint in {_only_column(relationship, 0), _only_column(relationship, 1)}
        or (relationship.junction is not None and hint == relationship.junction.table.name)
    )


def _is_meant_self(relationship: Relationship, target: str, hint: str | None) -> bool:
    """One foreign key, two directions: the table's name means the children, the column's the parent."""
    is_children = relationship.cardinality is Cardinality.ONE_TO_MANY and target == relationship.target.name
    if hint is not None:
        return is_children and hint == _only_column(relationship, 1)
    is_parent = relationship.cardinality is Cardinality.MANY_TO_ONE and target == _only_column(
        relationship, 0
    )
    return is_children or is_parent


def _only_column(relationship: Relationship, side: int) -> str | None:
    return relationship.columns[0][side] if len(relationship.columns) == 1 else None


def _suggest(schema: SchemaCache, in_schema: str, origin: str, target: str) -> str | None:
    known = schema.relationships.get(Name(in_schema, origin))
    if known is not None:
        meant = closest_other(target, (item.target.name for item in known if item.target.schema == in_schema))
        asked = target
    else:
        origins = (name.name for name in schema.relationships if name.schema == in_schema)
        meant, asked = closest(origin, origins, LOOSE), origin
    return f"Perhaps you meant '{meant}' instead of '{asked}'." if meant is not None else None


def _describe(relationship: Relationship) -> dict[str, str]:
    origin, target, junction = relationship.origin.name, relationship.target.name, relationship.junction
    if junction is not None:
        through = (
            f"{junction.table.name} using {junction.constraint}{_listed(junction.origin_columns, 0)}"
            f" and {junction.foreign_constraint}{_listed(junction.target_columns, 0)}"
        )
    else:
        through = (
            f"{relationship.constraint} using {origin}{_listed(relationship.columns, 0)}"
            f" and {target}{_listed(relationship.columns, 1)}"
        )
    return {
        "cardinality": relationship.cardinality.value,
        "embedding": f"{origin} with {target}",
        "relationship": through,
    }


def _listed(pairs: Sequence[tuple[str, str]], side: int) -> str:
    return f"({', '.join(pair[side] for pair in pairs)})"


def _spell(relationship: Relationship) -> str:
    junction = relationship.junction
    way = relationship.constraint if junction is None else junction.table.name
    return f"{relationship.target.name}!{way}"
