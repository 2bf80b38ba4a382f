"""Pure: a plan with its rendered statements: what is kept per shape."""

from __future__ import annotations

import hashlib

import msgspec

from toft.pg.transaction import Isolation
from toft.rest.plan.nodes import InvokePlan, Plan
from toft.rest.render.fragment import Rendered
from toft.rest.render.statement import render


class Prepared(msgspec.Struct, frozen=True):
    """Everything about a request but its values and its caller.

    name: of the prepared statements, to be joined with the role's. isolation: what a function insists on.
    """

    plan: Plan
    main: Rendered
    planned_count: Rendered | None
    name: bytes
    is_read_only: bool
    settings: tuple[tuple[str, bytes], ...] = ()
    isolation: Isolation | None = None


def prepare(plan: Plan) -> Prepared:
    """Render a plan."""
    statements = render(plan)
    settings: tuple[tuple[str, bytes], ...] = ()
    isolation = None
    if isinstance(plan, InvokePlan):
        routine = plan.call.routine
        settings = tuple((name, value.encode()) for name, value in routine.settings)
        isolation = known_isolation(routine.isolation)
    return Prepared(
        plan,
        statements.main,
        statements.planned_count,
        hashlib.blake2b(statements.main.sql, digest_size=12).digest(),
        plan.is_read_only,
        settings,
        isolation,
    )


def known_isolation(text: str | None) -> Isolation | None:
    """An isolation level as Postgres spells it; the weakest is none of its own."""
    match (text or "").replace("_", " "):
        case "serializable":
            return "serializable"
        case "repeatable read":
            return "repeatable read"
        case "read committed" | "read uncommitted":
            return "read committed"
        case _:
            return None
