"""Pure: INSERT, UPDATE, DELETE; their RETURNING rows are what the read tree then reads."""

from __future__ import annotations

from typing import Final

from toft.rest.plan.nodes import MutatePlan
from toft.rest.render.fragment import Parameters, column, condition, ident, qualified
from toft.rest.render.payload import BODY, PayloadColumn, payload_rows
from toft.rest.request import Act
from toft.rest.schema.model import Name

_BODY: Final = Name("", BODY)
#: How many rows an upsert has inserted, and not updated. The source's WHERE counts up for each row, the
#: DO UPDATE's WHERE down again; both are always true.
INSERTED: Final = "nullif(current_setting('pgrst.inserted', true), '')"


def _count(step: str, never: str) -> str:
    return f"set_config('pgrst.inserted', (coalesce({INSERTED}::int, 0) {step} 1)::text, true) <> '{never}'"


_COUNT_UP: Final = _count("+", "0")
_COUNT_DOWN: Final = _count("-", "-1")


def mutation(plan: MutatePlan, parameters: Parameters) -> str:
    """The statement that changes rows."""
    match plan.act:
        case Act.DELETE:
            where = _where(plan, plan.table, parameters)
            return f"DELETE FROM {qualified(plan.table)}{where}{_returning(plan)}"
        case Act.UPDATE:
            return _update(plan, parameters)
        case _:
            return _insert(plan, parameters)


def _payload(plan: MutatePlan, parameters: Parameters) -> str:
    columns = [
        PayloadColumn(each.name, each.type, each.convert, each.column.default) for each in plan.columns
    ]
    return payload_rows(columns, parameters, is_object=plan.is_object, fills_defaults=plan.fills_defaults)


def _update(plan: MutatePlan, parameters: Parameters) -> str:
    if not plan.columns:
        # There is nothing to set, and SQL has no word for that.
        table = Name("", plan.table.name)
        shown = ", ".join(column(table, name) for name in plan.returning) or "NULL"
        return f"SELECT {shown} FROM {qualified(plan.table)} WHERE false"
    assignments = ", ".join(f"{ident(each.name)} = {column(_BODY, each.name)}" for each in plan.columns)
    rows = _payload(plan, parameters)
    where = _where(plan, plan.table, parameters)
    return f"UPDATE {qualified(plan.table)} SET {assignments} FROM {rows}{where}{_returning(plan)}"


def _insert(plan: MutatePlan, parameters: Parameters) -> str:
    names = ", ".join(ident(each.name) for each in plan.columns)
    into = f"{qualified(plan.table)}({names})" if names else qualified(plan.table)
    shown = ", ".join(column(_BODY, each.name) for each in plan.columns)
    conditions = [_COUNT_UP] if plan.counts_inserts else []
    conditions += [condition(_BODY, where, parameters) for where in plan.where]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return (
        f"INSERT INTO {into} SELECT {shown} FROM {_payload(plan, parameters)}{where}"
        f"{_on_conflict(plan)}{_returning(plan)}"
    )


def _on_conflict(plan: MutatePlan) -> str:
    if not plan.conflict:
        return ""
    target = ", ".join(ident(name) for name in plan.conflict)
    if not plan.merges or not plan.columns:
        return f" ON CONFLICT({target}) DO NOTHING"
    assignments = ", ".join(f"{ident(each.name)} = EXCLUDED.{ident(each.name)}" for each in plan.columns)
    return f" ON CONFLICT({target}) DO UPDATE SET {assignments} WHERE {_COUNT_DOWN}"


def _where(plan: MutatePlan, qualifier: Name, parameters: Parameters) -> str:
    conditions = " AND ".join(condition(qualifier, where, parameters) for where in plan.where)
    return f" WHERE {conditions}" if conditions else ""


def _returning(plan: MutatePlan) -> str:
    # Without wanted columns a row is only there to be counted.
    return f" RETURNING {', '.join(column(plan.table, name) for name in plan.returning) or '1'}"
