"""Pure: the one statement of a request, and what it answers: always one row of the same columns.

total: all rows there are, if they were counted · page: rows in this answer · body · headers and status: what
the database wants them to be · location, inserted: of an insert.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from toft.rest.plan.nodes import InvokePlan, Plan, WritePlan
from toft.rest.plan.read import SOURCE
from toft.rest.render.body import ROWS, body
from toft.rest.render.call import call
from toft.rest.render.fragment import Parameters, Rendered, text
from toft.rest.render.mutate import INSERTED, mutation
from toft.rest.render.read import count, select
from toft.rest.request import Act, Media
from toft.rest.schema.model import Routine

_SETTINGS: Final = (
    "nullif(current_setting('response.headers', true), '') AS headers,"
    " nullif(current_setting('response.status', true), '') AS status"
)
_COUNTED: Final = f"count({ROWS})"

#: How a statement fails by itself when its number of rows is wrong, so that everything it did is undone in
#: the same round trip. `pg_faults.py` reads it.
ALARM: Final = re.compile(r"toft:(PGRST\d{3}):(\d+)")


class Statements(msgspec.Struct, frozen=True):
    """What a plan sends: the statement, and for a planned count the question to the planner."""

    main: Rendered
    planned_count: Rendered | None = None


def render(plan: Plan) -> Statements:
    """The statements of a plan."""
    parameters = Parameters()
    match plan:
        case WritePlan():
            sql = _write(plan, parameters)
        case InvokePlan():
            sql = _call(plan, parameters)
        case _:
            sql = _read(plan, parameters)
    if plan.media.kind == "plan":
        sql = f"EXPLAIN ({_explain_options(plan.media)}) {sql}"
    main = Rendered(sql.encode("utf-8", "surrogateescape"), parameters.sources, plan.maker.kind == "custom")
    return Statements(main, _planned_count(plan))


def _explain_options(media: Media) -> str:
    options = (option.upper() for option in media.plan_options)
    return ", ".join((f"FORMAT {media.plan_format.upper()}", *options))


def _planned_count(plan: Plan) -> Rendered | None:
    if plan.act is not Act.READ or plan.preferences.count not in {"planned", "estimated"}:
        return None
    parameters = Parameters()
    sql = f"EXPLAIN (FORMAT JSON) {count(plan.read, parameters)}"
    return Rendered(sql.encode("utf-8", "surrogateescape"), parameters.sources)


def _total(plan: Plan, parameters: Parameters) -> str:
    if not plan.counts_rows:
        return "NULL"
    counted = count(plan.read, parameters)
    if plan.act is Act.READ and plan.preferences.count == "estimated" and plan.max_rows is not None:
        # One more than is ever shown tells that the planner must be asked.
        counted += f" LIMIT {plan.max_rows + 1}"
    return f"(SELECT count(*) FROM ({counted}) counted)"


def _read(plan: Plan, parameters: Parameters) -> str:
    rows = select(plan.read, parameters)
    source = SOURCE.name
    if plan.maker.kind == "csv":
        with_rows, rows = f"WITH {source} AS ({rows}) ", f"SELECT * FROM {source}"
    else:
        with_rows = ""
    return (
        f"{with_rows}SELECT {_total(plan, parameters)}::text AS total, {_COUNTED}::text AS page,"
        f" {body(plan.maker, None, source)} AS body, {_SETTINGS} FROM ({rows}) {ROWS}"
    )


def _call(plan: InvokePlan, parameters: Parameters) -> str:
    routine = plan.call.routine
    called = call(plan.call, parameters)
    total = _total(plan, parameters)
    rows = select(plan.read, parameters)
    page = _guarded(plan, _COUNTED if routine.is_set else "1", routine)
    return (
        f"WITH {SOURCE.name} AS ({called}) SELECT {total}::text AS total, {page} AS page,"
        f" {body(plan.maker, routine, SOURCE.name)} AS body, {_SETTINGS} FROM ({rows}) {ROWS}"
    )


def _write(plan: WritePlan, parameters: Parameters) -> str:
    changed = mutation(plan.mutate, parameters)
    has_body = plan.maker.kind != "none"
    rows = select(plan.read, parameters) if has_body else f"SELECT * FROM {SOURCE.name}"
    inserted = INSERTED if plan.mutate.counts_inserts else "NULL"
    return (
        f"WITH {SOURCE.name} AS ({changed}) SELECT NULL AS total, {_guarded(plan, _COUNTED, None)} AS page,"
        f" {body(plan.maker, None, SOURCE.name)} AS body, {_SETTINGS},"
        f" {_location(plan)} AS location, {inserted} AS inserted FROM ({rows}) {ROWS}"
    )


def _location(plan: WritePlan) -> str:
    """Key and value pairs of the primary key, as JSON, when exactly one row was inserted."""
    mutate = plan.mutate
    if (
        plan.act is not Act.INSERT
        or plan.preferences.representation != "headers-only"
        or not mutate.primary_key
    ):
        return "NULL"
    keys = ", ".join(text(name) for name in mutate.primary_key)
    pairs = (
        "SELECT json_agg(json_build_array(k.key, k.value)) FROM (SELECT row_to_json(s) AS row"
        f" FROM {SOURCE.name} s LIMIT 1) r, json_each_text(r.row) k WHERE k.key IN ({keys})"
    )
    return f"CASE WHEN {_COUNTED} = 1 THEN ({pairs})::text END"


def _guarded(plan: Plan, counted: str, routine: Routine | None) -> str:
    """The number of rows, or the alarm if it is not what the client insists on."""
    guards: list[tuple[str, str]] = []
    if plan.act is Act.UPSERT_ONE:
        guards.append((f"{counted} <> 1", "PGRST115"))
    elif plan.is_singular:
        guards.append((f"{counted} <> 1", "PGRST116"))
    limit = plan.preferences.max_affected
    if (
        limit is not None
        and plan.preferences.is_strict
        and (routine is not None or plan.act in {Act.UPDATE, Act.DELETE})
    ):
        guards.append((f"{counted} > {limit}", "PGRST124"))
    if not guards:
        return f"{counted}::text"
    # A text that is no number makes Postgres fail, telling the text.
    cases = " ".join(f"WHEN {bad} THEN ('toft:{code}:' || {counted})::int" for bad, code in guards)
    return f"(CASE {cases} ELSE {counted} END)::text"
