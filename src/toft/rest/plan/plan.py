"""Pure: a request in a schema becomes a plan: the one place that says what comes after what."""

from __future__ import annotations

import msgspec

from toft.rest.errors import filter_required, max_affected_on_single, no_table, unknown_preferences
from toft.rest.plan.call import find_routine, plan_call, result_relation
from toft.rest.plan.mutate import plan_mutation
from toft.rest.plan.negotiate import NO_BODY, negotiate, selects_everything
from toft.rest.plan.nodes import InvokePlan, Plan, ReadNode, WritePlan
from toft.rest.plan.read import plan_read
from toft.rest.plan.suggest import CLOSE, closest
from toft.rest.request import Act, Preferences, RestRequest
from toft.rest.schema.model import Name, Routine, SchemaCache, Table

#: in larger schemas a suggestion would cost more than it helps
_SUGGESTS_BELOW = 500
_NEEDS_FILTER = {Act.UPDATE: "UPDATE", Act.DELETE: "DELETE"}


class Allowance(msgspec.Struct, frozen=True):
    """What the server's settings permit."""

    max_rows: int | None = None
    aggregates: bool = False
    plans: bool = False
    requires_filter: bool = False


def find_table(schema: SchemaCache, name: Name) -> Table:
    """The relation of the URL. Raises PGRST205."""
    table = schema.table(name)
    if table is None:
        names = schema.names_by_schema.get(name.schema, [])
        close = closest(name.name, names, CLOSE) if len(names) < _SUGGESTS_BELOW else None
        suggestion = None if close is None else f"Perhaps you meant the table '{name.schema}.{close}'"
        raise no_table(name.schema, name.name, suggestion)
    return table


def make_plan(schema: SchemaCache, request: RestRequest, allowance: Allowance) -> Plan:
    """What the request means in this schema. Raises `RestError`."""
    if request.act.is_call:
        return _plan_call(schema, request, allowance)
    table = find_table(schema, Name(request.schema, request.name))
    return _plan_relation(schema, request, table, allowance)


def _read(schema: SchemaCache, request: RestRequest, root: Name, allowance: Allowance) -> ReadNode:
    return plan_read(
        schema,
        request.query,
        root,
        from_source=request.act is not Act.READ,
        is_write=request.act.is_write,
        max_rows=allowance.max_rows,
        allows_aggregates=allowance.aggregates,
    )


def _plan_relation(schema: SchemaCache, request: RestRequest, table: Table, allowance: Allowance) -> Plan:
    root = Name(table.schema, table.name)
    read = _read(schema, request, root, allowance)
    if not request.act.is_write:
        plan = _plan(schema, request, root, read, root, allowance)
        _check_preferences(request.preferences)
        return plan
    mutate = plan_mutation(schema, request, table, read)
    if allowance.requires_filter and not mutate.where and mutate.act in _NEEDS_FILTER:
        raise filter_required(_NEEDS_FILTER[mutate.act])
    _check_preferences(request.preferences)
    plan = _plan(schema, request, root, read, root, allowance, has_key=bool(table.primary_key))
    return WritePlan(**msgspec.structs.asdict(plan), mutate=mutate)


def _plan_call(schema: SchemaCache, request: RestRequest, allowance: Allowance) -> Plan:
    routine, keys = route_call(schema, request)
    root = result_relation(routine)
    read = _read(schema, request, root, allowance)
    call = plan_call(request, routine, keys, read)
    plan = _plan(schema, request, Name(request.schema, request.name), read, root, allowance)
    preferences = request.preferences
    _check_preferences(preferences)
    if preferences.max_affected is not None and preferences.is_strict and not routine.is_set:
        raise max_affected_on_single()
    return InvokePlan(**msgspec.structs.asdict(plan), call=call)


def _plan(
    schema: SchemaCache,
    request: RestRequest,
    name: Name,
    read: ReadNode,
    target: Name,
    allowance: Allowance,
    *,
    has_key: bool = False,
) -> Plan:
    """What all kinds of plans have; `target` is whose rows a media type's handler would take."""
    maker, media = negotiate(
        schema, request.accepts, target, selects_all=selects_everything(read), allows_plans=allowance.plans
    )
    is_silent = request.act.is_write and request.preferences.representation != "representation"
    return Plan(
        request.act,
        name,
        media,
        NO_BODY if request.is_head or is_silent else maker,
        request.preferences,
        read,
        request.is_head,
        request.has_profile,
        allowance.max_rows,
        _applied(request, has_key=has_key),
    )


def route_call(schema: SchemaCache, request: RestRequest) -> tuple[Routine, set[str]]:
    """The function that is called, and the names of the arguments given. Raises PGRST202 and PGRST203."""
    is_post = request.act is Act.CALL
    if is_post:
        keys = set(request.payload.keys) if request.payload is not None else set[str]()
    else:
        keys = {name for name, _ in request.query.arguments}
    name = Name(request.schema, request.name)
    return find_routine(schema, name, keys, request.content, is_post=is_post), keys


def _check_preferences(preferences: Preferences) -> None:
    if preferences.unknown and preferences.is_strict:
        raise unknown_preferences(preferences.unknown)


def _applied(request: RestRequest, *, has_key: bool) -> tuple[str, ...]:
    """The preferences that were honoured, in the order in which they are told."""
    wanted, act = request.preferences, request.act
    is_insert = act is Act.INSERT and (has_key or request.query.on_conflict is not None)
    can_limit = act in {Act.UPDATE, Act.DELETE} or act.is_call
    told = {
        "resolution": wanted.resolution if is_insert else None,
        "missing": wanted.missing if act in {Act.INSERT, Act.UPDATE} else None,
        "return": wanted.representation if act.is_write else None,
        "count": wanted.count,
        "tx": wanted.transaction,
        "handling": wanted.handling,
        "timezone": wanted.timezone,
        "max-affected": wanted.max_affected if can_limit and wanted.is_strict else None,
    }
    return tuple(f"{name}={value}" for name, value in told.items() if value is not None)
