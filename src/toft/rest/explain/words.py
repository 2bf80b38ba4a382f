"""Pure: explanations in words: one or two sentences for `hint`, and everything known for those who follow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from toft.pg.quote import identifier
from toft.rest.explain.facts import COMMANDS, Policy, Relation, Routine, UniqueIndex
from toft.rest.explain.judge import Command, Test, Verdict, applying
from toft.rest.plan.suggest import closest

_PLAIN: Final = re.compile("[a-z_][a-z0-9_]*")


class Explanation(msgspec.Struct, frozen=True, omit_defaults=True):
    """hint: for people. failed: what said no, in a word that programs can compare."""

    hint: str
    failed: str
    role: str
    object: str
    command: str | None = None
    privileges: tuple[str, ...] | None = None
    policies: tuple[dict[str, Any], ...] = ()


def qualified(relation: Relation) -> str:
    """The name as SQL takes it.

    >>> from toft.rest.explain.facts import Relation
    >>> qualified(Relation("public", "Odd name", "r", False, False, True, (), (), (), ()))
    'public."Odd name"'
    """
    return f"{_bare(relation.schema)}.{_bare(relation.name)}"


def _bare(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else identifier(name)


def _names(policies: Sequence[Policy]) -> str:
    return ", ".join(f'"{policy.name}"' for policy in policies)


# --- row security ---------------------------------------------------------------------------------------


def row_refused(relation: Relation, role: str, command: Command, verdict: Verdict) -> Explanation:
    """A row that a write would have made, and no policy, or not every one, lets through."""
    place = f"{command} on {relation.shown} as {role}"
    if verdict.command == "SELECT" and command != "SELECT":
        hint, failed = f"{place}: {_unseen(relation, role, command, verdict)}", "select policy"
    elif not verdict.is_known:
        hint, failed = f"{place}: {_undecided(verdict, command)}", "a policy"
    elif not any(test.policy.is_permissive for test in verdict.tests):
        others = _others(relation, verdict.tests)
        hint, failed = f"{place}: no policy for {verdict.command} applies to {role}{others}.", "no policy"
    else:
        hint, failed = f"{place}: the row fails {_which(verdict)}.", f"{command.lower()} check"
    judged = {test.policy.name: test not in verdict.failing for test in verdict.tests}
    cards = tuple(_card(policy, judged if verdict.is_known else {}) for policy in relation.policies)
    return Explanation(hint, failed, role, relation.shown, command, relation.rights, cards)


def allowed(relation: Relation, role: str, command: Command) -> Explanation:
    """What decides about the rows of a request that went well."""
    cards = tuple(_card(policy, {}) for policy in relation.policies)
    place = f"{command} on {relation.shown} as {role}"
    if not relation.is_security_active:
        why = (
            "row level security is off" if not relation.has_row_security else f"{role} is above its policies"
        )
        return Explanation(
            f"{place}: all rows; {why}.", "", role, relation.shown, command, relation.rights, cards
        )
    filters = [p for p in applying(relation, command) if p.using is not None]
    shown = "; ".join(f'"{p.name}": {p.using}' for p in filters)
    hint = f"{place}: rows that pass {shown}." if shown else f"{place}: no rows; no policy applies to {role}."
    if command == "INSERT":
        hint = f"{place}: let in by {_names(applying(relation, command))}."
    return Explanation(hint, "", role, relation.shown, command, relation.rights, cards)


def _which(verdict: Verdict) -> str:
    shown = "; ".join(_expression(test) for test in verdict.failing)
    if not verdict.failing[0].policy.is_permissive:
        return f"the restrictive {shown}"
    return shown if len(verdict.failing) == 1 else f"every one of these, of which one has to pass: {shown}"


def _expression(test: Test) -> str:
    return f'{"USING" if test.is_using else "WITH CHECK"} of policy "{test.policy.name}": {test.check}'


def _unseen(relation: Relation, role: str, command: Command, verdict: Verdict) -> str:
    """The rule that surprises: whoever gets rows back, or filters by columns, reads them."""
    let_in = _names(applying(relation, command))
    why = f"the policies for {command} ({let_in}) let it pass, but a row that is returned or searched for"
    if verdict.tests:
        failing = "; ".join(_expression(test) for test in verdict.failing)
        refused = f" must pass SELECT's too, and it fails {failing}."
    else:
        refused = f" must pass a policy for SELECT too, and none applies to {role}."
    return (
        f"{why}{refused} Ask for no rows back (no .select(), or Prefer: return=minimal), or let a policy for"
        " SELECT show the row."
    )


def _undecided(verdict: Verdict, command: Command) -> str:
    shown = "; ".join(f"{_expression(test)} (for {test.command})" for test in verdict.tests)
    return f"the new row, after its defaults and triggers, fails one of the policies for {command}: {shown}."


def _others(relation: Relation, applied: Sequence[Test]) -> str:
    mine = {test.policy.name for test in applied}
    others = [policy for policy in relation.policies if policy.name not in mine]
    if not others:
        return "; the table has none" if not relation.policies else ""
    told = "; ".join(
        f'"{policy.name}" is for {COMMANDS[policy.command]} to {", ".join(policy.roles)}' for policy in others
    )
    return f": {told}"


def _card(policy: Policy, judged: dict[str, bool]) -> dict[str, Any]:
    card: dict[str, Any] = {
        "name": policy.name,
        "command": COMMANDS[policy.command],
        "permissive": policy.is_permissive,
        "roles": list(policy.roles),
        "applies": policy.applies,
        "using": policy.using,
        "check": policy.check,
    }
    return card | ({"passed": judged[policy.name]} if policy.name in judged else {})


def replaced_row_refused(relation: Relation, role: str, policy: str | None) -> Explanation:
    """An upsert met a row that the role may not update."""
    updates = [p for p in applying(relation, "UPDATE") if policy is None or p.name == policy]
    shown = "; ".join(f'USING of policy "{p.name}": {p.using}' for p in updates)
    hint = (
        f"UPDATE on {relation.shown} as {role}: the row that is there already may not be updated by it,"
        f" so it cannot be merged: {shown or f'no policy for UPDATE applies to {role}'}."
    )
    cards = tuple(_card(p, {}) for p in relation.policies)
    return Explanation(hint, "update using", role, relation.shown, "UPDATE", relation.rights, cards)


# --- privileges -----------------------------------------------------------------------------------------


def right_missing(relation: Relation, role: str, command: Command, needed: Sequence[Command]) -> Explanation:
    """A relation that the role may not use so. needed: what the request does, its reading included."""
    if not relation.may_use_schema:
        return schema_denied(relation.schema, role)
    if relation.kind == "S":
        hint = (
            f"{role} may not use the sequence {relation.shown}, which gives a column its default:"
            f" grant usage on sequence {qualified(relation)} to {_bare(role)};"
        )
        return Explanation(hint, "privilege", role, relation.shown, command)
    held = {right.upper() for right in relation.rights}
    missing = [name for name in needed if name not in held]
    if not missing:
        # A function or a trigger does something else with it than the request.
        holds = ", ".join(sorted(held)) or "no privilege"
        hint = f"{role} lacks a privilege on {relation.shown}; it holds {holds}."
        return Explanation(hint, "privilege", role, relation.shown, None, relation.rights)
    partly = [name for name in missing if name.lower() in relation.column_rights]
    rights = ", ".join(missing)
    grant = f"grant {rights.lower()} on {qualified(relation)} to {_bare(role)};"
    hint = f"{command} on {relation.shown} as {role}: the role lacks the privilege {rights}"
    if missing == ["SELECT"] and command != "SELECT":
        hint += f" ({command} is granted, but rows that are returned or searched for are read as well)"
    elif partly:
        hint += " on the whole table (it has it on some columns: name those in `select` or the body)"
    policies = tuple(_card(policy, {}) for policy in relation.policies)
    return Explanation(
        f"{hint}: {grant}", "privilege", role, relation.shown, command, relation.rights, policies
    )


def schema_denied(schema: str, role: str) -> Explanation:
    """A schema that the role may not enter."""
    hint = f"{role} may not use the schema {schema}: grant usage on schema {_bare(schema)} to {_bare(role)};"
    return Explanation(hint, "privilege", role, schema)


def routine_denied(routine: Routine, role: str) -> Explanation:
    """A function that the role may not call."""
    if not routine.may_use_schema:
        return schema_denied(routine.schema, role)
    hint = (
        f"{role} may not execute {routine.schema}.{routine.signature}:"
        f" grant execute on function {_bare(routine.schema)}.{routine.signature} to {_bare(role)};"
    )
    return Explanation(hint, "privilege", role, f"{routine.schema}.{routine.signature}")


# --- ON CONFLICT ----------------------------------------------------------------------------------------


def no_unique_index(relation: Relation, role: str, conflict: Sequence[str]) -> Explanation:
    """ON CONFLICT over columns that no constraint covers, though perhaps an index nearly does."""
    wanted = f"({', '.join(conflict)})"
    partial = [index for index in relation.unique if set(index.columns) == set(conflict) and index.predicate]
    if partial:
        hint = (
            f"the unique index {partial[0].name} on {relation.shown} covers {wanted}, but it is partial,"
            f" WHERE {partial[0].predicate}, and ON CONFLICT would have to repeat that, which no request can:"
            " make it a whole unique index or constraint, or call a function that says ON CONFLICT itself."
        )
        failed = "partial index"
    else:
        others = "; ".join(_index(index) for index in relation.unique)
        hint = f"nothing makes {wanted} unique on {relation.shown}; " + (
            f"what is unique there: {others}." if others else "the table has no unique index at all."
        )
        failed = "no unique index"
    return Explanation(hint, failed, role, relation.shown, "INSERT")


def _index(index: UniqueIndex) -> str:
    columns = ", ".join(name or "an expression" for name in index.columns)
    return f"({columns})" + (f" where {index.predicate}" if index.predicate else "")


# --- names ----------------------------------------------------------------------------------------------


def unknown_relation(
    name: str,
    role: str,
    found: Sequence[Relation],
    suggested: Relation | None,
    exposed: Sequence[str],
    others: Sequence[tuple[str, str]],
) -> Explanation | None:
    """A relation that is not served. found: those of that name; suggested: the nearest served one."""
    for relation in found:
        hint = f"{relation.shown} exists, but {_why_not_served(relation, exposed)}."
        return Explanation(hint, "not exposed", role, relation.shown)
    if suggested is not None:
        # The hint that is there already names it.
        if suggested.may_use_schema and (suggested.rights or suggested.column_rights):
            return None
        hint = f"{suggested.shown} is there, but nothing of it is granted to {role}."
        return Explanation(hint, "unknown name", role, suggested.shown)
    near = closest(name, [known for _, known in others], 0.75)
    if near is None:
        return None
    schema = next(schema for schema, known in others if known == near)
    hint = f"Perhaps you meant {schema}.{near}; it exists, but {_not_exposed(schema, exposed)}."
    return Explanation(hint, "not exposed", role, f"{schema}.{near}")


def _why_not_served(relation: Relation, exposed: Sequence[str]) -> str:
    if relation.schema in exposed:
        if relation.kind == "S":
            return "it is a sequence"
        return f"in another schema: name {relation.schema} in Accept-Profile or Content-Profile"
    return _not_exposed(relation.schema, exposed)


def _not_exposed(schema: str, exposed: Sequence[str]) -> str:
    return f"the schema {schema} is not exposed (exposed: {', '.join(exposed)}; see [api] schemas)"


def unknown_routine(
    name: str, role: str, found: Sequence[Routine], exposed: Sequence[str]
) -> Explanation | None:
    """A function that is not served though one of that name exists elsewhere."""
    for routine in found:
        if routine.schema not in exposed:
            shown = f"{routine.schema}.{routine.signature}"
            return Explanation(
                f"{shown} exists, but {_not_exposed(routine.schema, exposed)}.", "not exposed", role, shown
            )
    return None


def unknown_column(table: str, column: str, role: str, columns: Sequence[str]) -> Explanation | None:
    """A column that the table does not have."""
    near = closest(column, columns, 0.33)
    if near is not None:
        hint = f"Perhaps you meant the column '{near}' of '{table}'."
    elif len(columns) <= 20:
        hint = f"The columns of '{table}' are: {', '.join(columns)}."
    else:
        return None
    return Explanation(hint, "unknown name", role, table)
