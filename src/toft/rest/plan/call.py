"""Pure: which function a call means, and how its arguments reach it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from toft.rest.errors import ambiguous_function, no_function
from toft.rest.plan.nodes import CallPlan, ReadNode
from toft.rest.plan.read import filtered_columns, needed_columns
from toft.rest.plan.suggest import CLOSE, LOOSE, closest
from toft.rest.request import Act, Media, Operand, Payload, RestRequest
from toft.rest.schema.model import Name, Routine, SchemaCache

#: types that a function's single unnamed parameter may have for a kind of body
_UNNAMED = {
    "json": ("json", "jsonb"),
    "text": ("text",),
    "xml": ("xml",),
    "octets": ("bytea",),
}
_RAW_KINDS = ("text", "xml", "octets")


def find_routine(
    schema: SchemaCache, name: Name, keys: Collection[str], content: Media, *, is_post: bool
) -> Routine:
    """The overload that takes these arguments. Raises PGRST202 and PGRST203."""
    overloads = schema.routines.get(name, ())
    given = set(keys)
    by_name = [
        routine for routine in overloads if _takes(routine, given, is_post and content.kind in _RAW_KINDS)
    ]
    by_body = [
        routine
        for routine in overloads
        if is_post and routine not in by_name and _takes_body(routine, content.kind)
    ]
    chosen = by_name or by_body
    match chosen:
        case [routine]:
            return routine
        case []:
            raise _not_found(schema, name, sorted(given), content, overloads, is_post)
        case _:
            raise ambiguous_function(routine.signature for routine in chosen)


def _takes(routine: Routine, given: set[str], is_raw_body: bool) -> bool:
    if not routine.parameters:
        return not given and not is_raw_body
    required = {parameter.name for parameter in routine.parameters if parameter.is_required}
    optional = {parameter.name for parameter in routine.parameters if not parameter.is_required}
    return given - optional == required if required else given <= optional


def _takes_body(routine: Routine, kind: str) -> bool:
    return (
        len(routine.parameters) == 1
        and not routine.parameters[0].name
        and routine.parameters[0].type in _UNNAMED.get(kind, ())
    )


def _not_found(
    schema: SchemaCache,
    name: Name,
    keys: Sequence[str],
    content: Media,
    overloads: Sequence[Routine],
    is_post: bool,
) -> Exception:
    is_raw = is_post and content.kind in _RAW_KINDS
    unnamed = "/".join(_UNNAMED[content.kind]) if is_post and content.kind in _UNNAMED else None
    suggestion = None if is_raw else _suggest(schema, name, keys, overloads)
    return no_function(
        f"{name.schema}.{name.name}", keys, unnamed=unnamed, is_body_raw=is_raw, suggestion=suggestion
    )


def _suggest(
    schema: SchemaCache, name: Name, keys: Sequence[str], overloads: Sequence[Routine]
) -> str | None:
    if overloads:
        lists = [_listed(parameter.name for parameter in routine.parameters) for routine in overloads]
        close = closest(_listed(keys), lists, LOOSE)
        close = None if close is None else name.name + close
    else:
        names = (known.name for known in schema.routines if known.schema == name.schema)
        close = closest(name.name, names, CLOSE)
    return None if close is None else f"Perhaps you meant to call the function {name.schema}.{close}"


def _listed(names: Iterable[str]) -> str:
    return f"({', '.join(sorted(names))})"


def result_relation(routine: Routine) -> Name:
    """What its rows are read as: the relation that it returns rows of, or itself."""
    return Name(routine.schema, routine.returns.name if routine.is_composite else routine.name)


def plan_call(request: RestRequest, routine: Routine, keys: Collection[str], read: ReadNode) -> CallPlan:
    """What precedes the read tree of a call."""
    payload = request.payload or Payload()
    returning = needed_columns(read, ())
    if returning and returning != ("*",):
        returning = tuple(sorted(filtered_columns(read).union(returning)))
    if len(routine.parameters) == 1 and not routine.parameters[0].name:
        return CallPlan(routine, routine.parameters, takes_body=True, returning=returning)
    given = tuple(parameter for parameter in routine.parameters if parameter.name in keys)
    arguments: dict[str, tuple[Operand, ...]] | None = None
    if request.act is Act.CALL_READ:
        arguments = _grouped(request.query.arguments)
    elif payload.arguments is not None:
        arguments = _grouped(payload.arguments)
    return CallPlan(routine, given, arguments, payload.is_object, returning=returning)


def _grouped(pairs: Sequence[tuple[str, Operand]]) -> dict[str, tuple[Operand, ...]]:
    grouped: dict[str, tuple[Operand, ...]] = {}
    for name, operand in pairs:
        grouped[name] = (*grouped.get(name, ()), operand)
    return grouped
