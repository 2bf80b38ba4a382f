"""Pure: INSERT, UPDATE and DELETE: which columns, which conditions, what must come back."""

from __future__ import annotations

from toft.rest.errors import no_column, put_filters
from toft.rest.plan.nodes import MutatePlan, ReadNode, TypedColumn, Where
from toft.rest.plan.read import needed_columns, plan_condition
from toft.rest.request import Act, Compare, Payload, RestRequest
from toft.rest.schema.model import Name, SchemaCache, Table


def plan_mutation(schema: SchemaCache, request: RestRequest, table: Table, read: ReadNode) -> MutatePlan:
    """What precedes the read tree. Raises PGRST105 and PGRST204."""
    name = Name(table.schema, table.name)
    preferences = request.preferences
    wants_rows = preferences.representation in {"representation", "headers-only"}
    returning = needed_columns(read, table.primary_key) if wants_rows else ()
    where = _where(schema, request, table)
    if request.act is Act.DELETE:
        return MutatePlan(request.act, name, where=where, returning=returning)
    payload = request.payload or Payload()
    if request.act is Act.UPSERT_ONE:
        _check_put(request, table)
    columns = tuple(_typed(schema, table, key) for key in payload.keys)
    plan = MutatePlan(
        request.act,
        name,
        columns,
        payload.is_object,
        fills_defaults=preferences.missing == "default" and request.act is not Act.UPSERT_ONE,
        where=where,
        returning=returning,
        primary_key=table.primary_key,
    )
    match request.act:
        case Act.UPDATE:
            return plan
        case Act.UPSERT_ONE:
            return _with_conflict(plan, table.primary_key, merges=True)
        case _:
            conflict = request.query.on_conflict or table.primary_key
            if preferences.resolution is None:
                return _without_where(plan)
            return _with_conflict(
                _without_where(plan), conflict, merges=preferences.resolution == "merge-duplicates"
            )


def _without_where(plan: MutatePlan) -> MutatePlan:
    return MutatePlan(
        plan.act,
        plan.table,
        plan.columns,
        plan.is_object,
        plan.fills_defaults,
        returning=plan.returning,
        primary_key=plan.primary_key,
    )


def _with_conflict(plan: MutatePlan, conflict: tuple[str, ...], *, merges: bool) -> MutatePlan:
    return MutatePlan(
        plan.act,
        plan.table,
        plan.columns,
        plan.is_object,
        plan.fills_defaults,
        plan.where,
        plan.returning,
        conflict,
        merges,
        merges,
        plan.primary_key,
    )


def _where(schema: SchemaCache, request: RestRequest, table: Table) -> tuple[Where, ...]:
    filters = [condition for path, condition in request.query.filters if not path]
    logic = [condition for path, condition in request.query.logic if not path]
    return tuple(plan_condition(schema, table, condition, {}) for condition in (*filters, *logic))


def _check_put(request: RestRequest, table: Table) -> None:
    filters = request.query.filters
    named = {found.field.name for _, found in filters}
    are_equalities = all(
        not path
        and not found.negated
        and not found.field.path
        and isinstance(found.operation, Compare)
        and found.operation.operator == "eq"
        and found.operation.quantifier is None
        for path, found in filters
    )
    if request.query.logic or not table.primary_key or named != set(table.primary_key) or not are_equalities:
        raise put_filters()


def _typed(schema: SchemaCache, table: Table, key: str) -> TypedColumn:
    column = table.columns.get(key)
    if column is None:
        raise no_column(table.name, key)
    convert = schema.representations.get(("json", column.nominal_type))
    return TypedColumn(column, "json" if convert else column.nominal_type, convert)
