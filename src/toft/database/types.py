"""Types of a database for programs: TypeScript in the shape that supabase-js takes, Python as TypedDicts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from toft.migrate.history import array
from toft.pg.connection import Connection
from toft.pg.wire import Statement

_NUMBERS = frozenset({"int2", "int4", "int8", "float4", "float8", "numeric", "oid"})
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


async def read_types(session: Connection, schemas: Sequence[str]) -> dict[str, Any]:
    """What programs need to know of these schemas."""
    [result] = await session.pipeline([Statement(_question().encode(), (array(schemas),))])
    [[raw]] = result.rows
    return msgspec.json.decode(raw or b"{}")


@cache
def _question() -> str:
    return (resources.files("toft.database") / "types.sql").read_text("utf-8")


def as_typescript(types: dict[str, Any], schemas: Sequence[str]) -> str:
    """A `Database` type, as `createClient<Database>` takes it."""
    lines = [
        "export type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[];",
        "",
        "export type Database = {",
    ]
    for schema in schemas:
        lines += [f"  {_key(schema)}: {{", *_schema(types, schema), "  };"]
    return "\n".join([*lines, "};", ""])


def _schema(types: dict[str, Any], schema: str) -> Iterator[str]:
    tables = [table for table in types["tables"] if table["schema"] == schema]
    for section, kinds in (("Tables", "rpf"), ("Views", "vm")):
        inside = [line for table in tables if table["kind"] in kinds for line in _table(table, section)]
        yield from _block(section, inside)
    functions = [function for function in types["functions"] if function["schema"] == schema]
    by_name: dict[str, list[dict[str, Any]]] = {}
    for function in functions:
        by_name.setdefault(function["name"], []).append(function)
    inside = [
        f"      {_key(name)}: {' | '.join(_function(each, schema, tables) for each in each_one)};"
        for name, each_one in by_name.items()
    ]
    yield from _block("Functions", inside)
    enums = [
        f"      {_key(enum['name'])}: {' | '.join(map(_text, enum['values']))};"
        for enum in types["enums"]
        if enum["schema"] == schema
    ]
    yield from _block("Enums", enums)
    yield from _block("CompositeTypes", [])


def _block(name: str, inside: list[str]) -> Iterator[str]:
    if inside:
        yield f"    {name}: {{"
        yield from inside
        yield "    };"
    else:
        yield f"    {name}: {{ [_ in never]: never }};"


def _table(table: dict[str, Any], section: str) -> Iterator[str]:
    yield f"      {_key(table['name'])}: {{"
    columns: list[dict[str, Any]] = table["columns"] or []
    nullable = section == "Views"
    yield from _members("Row", [(column, False, column["nullable"] or nullable) for column in columns])
    if table["updatable"]:
        inserted = [
            (column, column["nullable"] or column["has_default"] or nullable, column["nullable"] or nullable)
            for column in columns
        ]
        yield from _members("Insert", inserted)
        yield from _members("Update", [(column, True, column["nullable"] or nullable) for column in columns])
    yield "        Relationships: ["
    for relation in table["relations"]:
        yield (
            f"          {{ foreignKeyName: {_text(relation['name'])}; columns: {_texts(relation['columns'])};"
            f" isOneToOne: {str(relation['one']).lower()}; referencedRelation: {_text(relation['to'])};"
            f" referencedColumns: {_texts(relation['to_columns'])} }},"
        )
    yield "        ];"
    yield "      };"


def _members(name: str, columns: list[tuple[dict[str, Any], bool, bool]]) -> Iterator[str]:
    yield f"        {name}: {{"
    for column, is_optional, is_nullable in columns:
        kind = "never" if column["always"] and name != "Row" else _column(column)
        null = " | null" if is_nullable and kind != "never" else ""
        optional = "?" if is_optional or kind == "never" else ""
        yield f"          {_key(column['name'])}{optional}: {kind}{null};"
    yield "        };"


def _column(column: dict[str, Any]) -> str:
    if column["enum"]:
        name = column["element"] or column["type"]
        kind = f'Database[{_text(column["enum_schema"])}]["Enums"][{_text(name)}]'
        return f"{kind}[]" if column["element"] else kind
    if column["element"]:
        return f"{_scalar(column['element'])}[]"
    return _scalar(column["type"])


def _scalar(name: str) -> str:
    if name in _NUMBERS:
        return "number"
    if name == "bool":
        return "boolean"
    if name in ("json", "jsonb"):
        return "Json"
    if name == "void":
        return "undefined"
    if name.startswith("_"):
        return _scalar(name[1:]) + "[]"
    return "unknown" if name in ("record", "anyelement") else "string"


def _function(function: dict[str, Any], schema: str, tables: list[dict[str, Any]]) -> str:
    arguments = "; ".join(
        f"{_key(each['name'])}{'?' if each['optional'] else ''}: {_scalar(each['type'])}"
        for each in function["arguments"]
    )
    is_table = any(table["name"] == function["table"] for table in tables)
    returns = (
        f'Database[{_text(schema)}]["Tables"][{_text(function["table"])}]["Row"]'
        if is_table
        else _scalar(function["returns"])
    )
    given = f"{{ {arguments} }}" if arguments else "Record<PropertyKey, never>"
    return f"{{ Args: {given}; Returns: {returns}{'[]' if function['set'] else ''} }}"


def _key(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    return msgspec.json.encode(value).decode()


def _texts(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"


def as_python(types: dict[str, Any], schemas: Sequence[str]) -> str:
    """A TypedDict for the rows of each table and view, and a Literal for each enum."""
    lines = ["from typing import Any, Literal, TypedDict", ""]
    for enum in types["enums"]:
        values = ", ".join(repr(value) for value in enum["values"])
        lines += ["", f"{_class(enum)} = Literal[{values}]"]
    for table in types["tables"]:
        if table["schema"] in schemas:
            columns: list[dict[str, Any]] = table["columns"] or []
            fields = ", ".join(f"{column['name']!r}: {_python(column)}" for column in columns)
            lines += ["", f"{_class(table)} = TypedDict({_class(table)!r}, {{{fields}}})"]
    return "\n".join([*lines, ""])


def _class(named: dict[str, Any]) -> str:
    words = re.split(r"[^A-Za-z0-9]+", named["name"])
    prefix = "" if named["schema"] == "public" else named["schema"].title().replace("_", "")
    name = prefix + "".join(word[:1].upper() + word[1:] for word in words if word)
    return name if name[:1].isalpha() else f"T{name}"


def _python(column: dict[str, Any]) -> str:
    name = column["element"] or column["type"]
    if column["enum"]:
        kind = repr(_class({"schema": column["enum_schema"], "name": name}))
        kind = kind.strip("'")
    elif name in ("int2", "int4", "int8", "oid"):
        kind = "int"
    elif name in _NUMBERS:
        kind = "float"
    else:
        kind = {"bool": "bool", "json": "Any", "jsonb": "Any"}.get(name, "str")
    kind = f"list[{kind}]" if column["element"] else kind
    return f"{kind} | None" if column["nullable"] and kind != "Any" else kind
