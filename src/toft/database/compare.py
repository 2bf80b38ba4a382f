"""Pure: two catalogues compared, object by object, and the SQL that leads from the one to the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from toft.database.catalogue import Catalogue, Item
from toft.pg.quote import identifier, literal


class Change(msgspec.Struct, frozen=True):
    """op: `create`, `alter` or `drop`. before, after: the facts that differ, or all of them."""

    op: str
    kind: str
    identity: str
    parent: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


#: creation order; drops go the other way
_ORDER = (
    "schema", "extension", "type", "enum_value", "sequence", "table", "column", "function", "constraint",
    "index", "view", "matview", "rls", "policy", "trigger", "event_trigger", "publication",
    "default_privilege", "grant", "comment", "setting",
)  # fmt: skip
#: nothing that a change of it would say
_IGNORED = frozenset({"position"})


def compare(before: Catalogue, after: Catalogue) -> list[Change]:
    """The changes that lead from the first to the second, sorted by kind and name."""
    changes: list[Change] = []
    for key in sorted({*before, *after}, key=lambda key: (_ORDER.index(key[0]), key[1])):
        old, new = before.get(key), after.get(key)
        if old is None and new is not None:
            changes.append(Change("create", new.kind, new.identity, new.parent, None, new.facts))
        elif new is None and old is not None:
            changes.append(Change("drop", old.kind, old.identity, old.parent, old.facts, None))
        elif old is not None and new is not None and (differing := _differing(old, new)):
            changes.append(
                Change(
                    "alter",
                    new.kind,
                    new.identity,
                    new.parent,
                    {name: old.facts.get(name) for name in differing},
                    {name: new.facts.get(name) for name in differing},
                )
            )
    return changes


def _differing(old: Item, new: Item) -> list[str]:
    names = sorted({*old.facts, *new.facts} - _IGNORED)
    return [name for name in names if old.facts.get(name) != new.facts.get(name)]


def as_sql(before: Catalogue, after: Catalogue) -> list[str]:
    """Statements that make the first into the second, in an order that works for most schemas.

    What cannot be said in SQL with certainty (a value taken out of an enum) becomes a comment.
    """
    changes = compare(before, after)
    rank = {kind: number for number, kind in enumerate(_ORDER)}
    gone = [
        change for change in changes if change.op == "drop" or (change.op == "alter" and _is_replaced(change))
    ]
    made = [
        change
        for change in changes
        if change.op == "create" or (change.op == "alter" and _is_replaced(change))
    ]
    altered = [change for change in changes if change.op == "alter" and not _is_replaced(change)]
    gone_with_parts = {change.identity for change in gone if change.kind in ("table", "type")}
    made_with_parts = {change.identity for change in made if change.kind in ("table", "type")}
    lines: list[str] = []
    for change in sorted(gone, key=lambda change: -rank[change.kind]):
        if change.parent not in gone_with_parts:
            lines += _drop(change)
    for change in sorted([*made, *altered], key=lambda change: (rank[change.kind], _late(change))):
        if change.op == "alter" and change in altered:
            lines += _alter(change)
        elif change.kind in ("column", "enum_value") and change.parent in made_with_parts:
            continue
        else:
            lines += _create(after[change.kind, change.identity], after)
    has_functions = any(change.kind == "function" for change in made)
    return [*(["set check_function_bodies = off;"] if has_functions and lines else []), *lines]


def _is_replaced(change: Change) -> bool:
    return change.kind in {
        "index",
        "constraint",
        "policy",
        "trigger",
        "matview",
        "grant",
        "default_privilege",
    }


def _late(change: Change) -> int:
    """Foreign keys come after what they point to."""
    facts = change.after or {}
    return 1 if change.kind == "constraint" and facts.get("type") == "f" else 0


def _name(identity: str) -> str:
    return ".".join(identifier(part) for part in identity.split(".", 1))


def _commented(item: Change | Item) -> str:
    """A table, or a column of it."""
    whole = _name(item.parent or "")
    return whole if item.identity == item.parent else f"{whole}.{_last(item)}"


def _commented_kind(change: Change) -> str:
    return "table" if change.identity == change.parent else "column"


def _last(change: Change | Item) -> str:
    return identifier(change.identity.removeprefix(f"{change.parent}."))


def _create(item: Item, whole: Catalogue) -> Iterator[str]:  # noqa: C901 - one table of kinds
    facts, name = item.facts, item.identity
    match item.kind:
        case "schema":
            yield f"create schema {identifier(name)};"
        case "extension":
            where = identifier(facts["schema"])
            yield f"create extension if not exists {identifier(name)} with schema {where};"
        case "type":
            yield from _create_type(item, whole)
        case "enum_value":
            after = f" after {literal(facts['after'])}" if facts["after"] else ""
            kind = _name(item.parent or "")
            yield f"alter type {kind} add value if not exists {literal(facts['label'])}{after};"
        case "sequence":
            yield (
                f"create sequence {_name(name)} as {facts['type']} increment {facts['increment']}"
                f" minvalue {facts['min']} maxvalue {facts['max']} start {facts['start']}"
                f"{' cycle' if facts['cycle'] else ''};"
            )
        case "table":
            yield _create_table(item, whole)
        case "column":
            yield f"alter table {_name(item.parent or '')} add column {_column(item)};"
        case "function" if "definition" in facts:
            yield facts["definition"].rstrip().rstrip(";") + ";"
        case "constraint":
            table = _name(item.parent or "")
            yield f"alter table {table} add constraint {_last(item)} {facts['definition']};"
        case "index" | "trigger":
            yield facts["definition"] + ";"
        case "view" | "matview":
            options = f" with ({', '.join(facts['options'])})" if facts["options"] else ""
            what = "or replace view" if item.kind == "view" else "materialized view"
            yield f"create {what} {_name(name)}{options} as\n{facts['definition'].rstrip(';')};"
        case "rls":
            yield f"alter table {_name(name)} enable row level security;"
            if facts["forced"]:
                yield f"alter table {_name(name)} force row level security;"
        case "policy":
            yield _create_policy(item)
        case "grant":
            grantee = name.rpartition(" to ")[2]
            yield f"grant {', '.join(facts['privileges'])} on {_on(item)} to {grantee};"
        case "comment":
            yield f"comment on {facts['on']} {_commented(item)} is {literal(facts['text'])};"
        case _:
            yield f"-- {item.kind} {name}: {msgspec.json.encode(facts).decode()}"


def _create_type(item: Item, whole: Catalogue) -> Iterator[str]:
    facts, name = item.facts, _name(item.identity)
    match facts["kind"]:
        case "enum":
            values = [
                other.facts
                for other in whole.values()
                if other.kind == "enum_value" and other.parent == item.identity
            ]
            labels: list[str] = []
            follow = None
            while (found := next((value for value in values if value["after"] == follow), None)) is not None:
                follow = found["label"]
                labels.append(literal(follow))
            yield f"create type {name} as enum ({', '.join(labels)});"
        case "domain":
            yield f"create domain {name} as {facts['base']} {' '.join(facts['checks'] or [])};"
        case "composite":
            fields = ", ".join(f"{identifier(field)} {kind}" for field, kind in facts["fields"])
            yield f"create type {name} as ({fields});"
        case _:
            yield f"create type {name} as range (subtype = {facts['subtype']});"


def _create_table(item: Item, whole: Catalogue) -> str:
    facts, name = item.facts, _name(item.identity)
    if facts["partition_of"]:
        return f"create table {name} partition of {facts['partition_of']} {facts['partition_bound']};"
    columns = sorted(
        (other for other in whole.values() if other.kind == "column" and other.parent == item.identity),
        key=lambda other: other.facts["position"],
    )
    inside = ",\n".join(f"  {_column(column)}" for column in columns)
    partition = f" partition by {facts['partition_key']}" if facts["partition_key"] else ""
    unlogged = "unlogged " if facts["unlogged"] else ""
    return f"create {unlogged}table {name} (\n{inside}\n){partition};"


def _column(item: Item) -> str:
    facts = item.facts
    parts = [_last(item), facts["type"]]
    if facts["identity"]:
        parts.append(f"generated {'always' if facts['identity'] == 'a' else 'by default'} as identity")
    elif facts["generated"] is not None:
        parts.append(f"generated always as ({facts['generated']}) stored")
    elif facts["default"] is not None:
        parts.append(f"default {facts['default']}")
    if facts["not_null"]:
        parts.append("not null")
    return " ".join(parts)


def _create_policy(item: Item) -> str:
    facts = item.facts
    kind = "" if facts["permissive"] else " as restrictive"
    using = f" using ({facts['using']})" if facts["using"] is not None else ""
    check = f" with check ({facts['check']})" if facts["check"] is not None else ""
    return (
        f"create policy {_last(item)} on {_name(item.parent or '')}{kind} for {facts['command']}"
        f" to {', '.join(facts['roles'])}{using}{check};"
    )


def _on(change: Change | Item) -> str:
    facts = change.facts if isinstance(change, Item) else (change.before or {})
    target = change.parent or ""
    if facts.get("on") == "function":
        path, _, arguments = target.partition("(")
        return f"function {_name(path)}({arguments}"
    if facts.get("on") == "schema":
        return f"schema {identifier(target)}"
    return f"{facts.get('on', 'table')} {_name(target)}"


def _drop(change: Change) -> Iterator[str]:
    name, parent = change.identity, _name(change.parent or "")
    match change.kind:
        case "schema" | "extension":
            yield f"drop {change.kind} {identifier(name)};"
        case "table" | "view" | "sequence" | "type":
            yield f"drop {change.kind} {_name(name)};"
        case "matview":
            yield f"drop materialized view {_name(name)};"
        case "column":
            yield f"alter table {parent} drop column {_last(change)};"
        case "constraint":
            yield f"alter table {parent} drop constraint {_last(change)};"
        case "index":
            schema = (change.parent or "").partition(".")[0]
            yield f"drop index {identifier(schema)}.{_last(change)};"
        case "policy" | "trigger":
            yield f"drop {change.kind} {_last(change)} on {parent};"
        case "function":
            path, _, arguments = name.partition("(")
            yield f"drop function {_name(path)}({arguments};"
        case "rls":
            yield f"alter table {_name(name)} disable row level security;"
        case "grant":
            privileges = ", ".join((change.before or {})["privileges"])
            yield f"revoke {privileges} on {_on(change)} from {name.rpartition(' to ')[2]};"
        case "comment":
            yield f"comment on {(change.before or {})['on']} {_commented(change)} is null;"
        case _:
            yield f"-- {change.kind} {name} is gone: this cannot be said in one statement"


def _alter(change: Change) -> Iterator[str]:
    name, parent = change.identity, _name(change.parent or "")
    after = change.after or {}
    match change.kind:
        case "column":
            column = f"alter table {parent} alter column {_last(change)}"
            if "type" in after:
                yield f"{column} type {after['type']};"
            if "default" in after:
                default = after["default"]
                yield f"{column} {'drop default' if default is None else f'set default {default}'};"
            if "not_null" in after:
                yield f"{column} {'set' if after['not_null'] else 'drop'} not null;"
            if "identity" in after or "generated" in after:
                yield f"-- {name}: identity or generation differs: make the column anew"
        case "function" if "definition" in after:
            yield after["definition"].rstrip().rstrip(";") + ";"
        case "view" if "definition" in after:
            yield f"create or replace view {_name(name)} as\n{after['definition'].rstrip(';')};"
        case "rls":
            yield f"alter table {_name(name)} {'' if after['forced'] else 'no '}force row level security;"
        case "extension" if "version" in after:
            yield f"alter extension {identifier(name)} update to {literal(after['version'])};"
        case "comment":
            yield f"comment on {_commented_kind(change)} {_commented(change)} is {literal(after['text'])};"
        case _:
            yield f"-- {change.kind} {name} differs: {msgspec.json.encode(after).decode()}"
