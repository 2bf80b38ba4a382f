"""Pure: which policies have a say in a write, the question how they judge its rows, and the verdict.

Postgres tells that a row was refused, hardly ever by which policy. So each expression is evaluated by itself,
as the same role, over the rows as the request would have made them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from toft.rest.explain.facts import Policy, Relation
from toft.rest.render.fragment import ident
from toft.rest.schema.model import Table

type Command = Literal["SELECT", "INSERT", "UPDATE", "DELETE"]
_LETTERS: Final[dict[Command, str]] = {"SELECT": "r", "INSERT": "a", "UPDATE": "w", "DELETE": "d"}
_MOST_ROWS: Final = 100


class Test(msgspec.Struct, frozen=True):
    """A policy as it is applied to new rows. check: WITH CHECK, or USING where that stands for it."""

    policy: Policy
    command: Command
    check: str
    is_using: bool


class Verdict(msgspec.Struct, frozen=True):
    """What failed. command: whose policies. tests: those that applied; failing: those that said no.

    is_known: it was seen by trying, or follows from there being no policy at all.
    """

    command: Command
    tests: tuple[Test, ...]
    failing: tuple[Test, ...]
    is_known: bool


def applying(relation: Relation, command: Command) -> list[Policy]:
    """The policies for a command that apply to the role."""
    return [p for p in relation.policies if p.applies and p.command in ("*", _LETTERS[command])]


def tests_of(relation: Relation, command: Command, *, must_be_seen: bool) -> list[Test]:
    """What new rows of a write must pass: its own policies', and SELECT's where rows are read as well."""
    found = [_as_check(policy, command) for policy in applying(relation, command)]
    if must_be_seen:
        found += [
            Test(policy, "SELECT", policy.using or "true", True) for policy in applying(relation, "SELECT")
        ]
    return found


def _as_check(policy: Policy, command: Command) -> Test:
    stands_in = policy.check is None
    return Test(policy, command, (policy.using if stands_in else policy.check) or "true", stands_in)


def rows_of_insert(table: Table, keys: Sequence[str]) -> str:
    """The rows of a JSON array $1 as an INSERT makes them; values that only a write can give are null."""
    shown = ", ".join(_inserted(table, name, is_given=name in keys) for name in table.columns)
    whole = f"{ident(table.schema)}.{ident(table.name)}"
    return f"select {shown} from json_populate_recordset(null::{whole}, $1::json) r limit {_MOST_ROWS}"


def _inserted(table: Table, name: str, *, is_given: bool) -> str:
    column = table.columns[name]
    if is_given:
        value = f"r.{ident(name)}"
    elif column.default is not None and "nextval(" not in column.default:
        value = f"({column.default})::{column.nominal_type}"
    else:
        value = f"null::{column.nominal_type}"
    return f"{value} as {ident(name)}"


def rows_of_update(table: Table) -> str:
    """The rows of the JSON array $2 with the values of the object $1 in them."""
    whole = f"{ident(table.schema)}.{ident(table.name)}"
    return (
        f"select (jsonb_populate_record(r, $1::jsonb)).* "
        f"from jsonb_populate_recordset(null::{whole}, $2::jsonb) r limit {_MOST_ROWS}"
    )


def question(table: Table, rows: str, tests: Sequence[Test]) -> str:
    """For each row an array of what each test says: one JSON value."""
    answers = ", ".join(f"coalesce(({test.check}), false)" for test in tests)
    return f"select json_agg(json_build_array({answers})) from ({rows}) {ident(table.name)}"


def judge(
    groups: Sequence[Command], tests: Sequence[Test], answers: Sequence[Sequence[bool]] | None
) -> Verdict:
    """Whose policies refuse the first row that is refused.

    groups: the commands whose policies have a say, the write's own first. answers: None if it was not tried.
    """
    for group in groups:
        own = tuple(test for test in tests if test.command == group)
        if not any(test.policy.is_permissive for test in own):
            return Verdict(group, own, own, is_known=True)
    for row in answers or ():
        said = list(zip(tests, row, strict=True))
        for group in groups:
            own = [(test, is_passed) for test, is_passed in said if test.command == group]
            failing = _failing(own)
            if failing:
                return Verdict(group, tuple(test for test, _ in own), failing, is_known=True)
    return Verdict(groups[0], tuple(tests), (), is_known=False)


def _failing(own: Sequence[tuple[Test, bool]]) -> tuple[Test, ...]:
    permissive = [test for test, _ in own if test.policy.is_permissive]
    restrictive = [test for test, is_passed in own if not test.policy.is_permissive and not is_passed]
    if not any(is_passed for test, is_passed in own if test.policy.is_permissive):
        return tuple(permissive)
    return tuple(restrictive)
