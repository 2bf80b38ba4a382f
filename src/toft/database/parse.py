"""Pure: what a statement does that others on the database would notice, by libpg_query (postgast)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import postgast
from postgast import pg_query_pb2 as ast

_MANAGED = frozenset({"auth", "storage", "realtime", "vault"})
_VOLATILE = frozenset({
    "random", "gen_random_uuid", "uuid_generate_v4", "uuid_generate_v1", "clock_timestamp", "timeofday",
    "nextval",
})  # fmt: skip
_SERIALS = frozenset({"serial", "bigserial", "smallserial", "serial4", "serial8", "serial2"})


class Fact(msgspec.Struct, frozen=True):
    """One thing that a statement does. rule: of `safety.py`, or one that counts only together with others.

    object: what it is about, for people. table: `schema.name` of a table that must be there already for it to
    matter; None: it always does. locks: the table's users wait for the statement, and behind it.
    """

    rule: str
    object: str
    table: str | None = None
    locks: bool = False


def facts_of(sql: str) -> list[Fact]:
    """Everything noteworthy in a single statement; `parse-failed` when it is not understood."""
    try:
        tree = postgast.parse(sql)
    except (postgast.PgQueryError, UnicodeEncodeError):
        return [Fact("parse-failed", "")]
    return [fact for statement in tree.stmts for fact in _facts(statement.stmt)]


def name_of(relation: ast.RangeVar) -> str:
    """`schema.name`; without a schema the name is one in public, as it is for `postgres`."""
    return f"{relation.schemaname or 'public'}.{relation.relname}"


def _facts(node: ast.Node) -> Iterator[Fact]:  # noqa: C901 - one table of statements
    kind = node.WhichOneof("node")
    match kind:
        case "index_stmt":
            yield from _index(node.index_stmt)
        case "alter_table_stmt":
            yield from _alter_table(node.alter_table_stmt)
        case "create_stmt":
            yield from _create_table(node.create_stmt)
        case "drop_stmt":
            yield from _drop(node.drop_stmt)
        case "rename_stmt":
            yield from _rename(node.rename_stmt)
        case "truncate_stmt":
            for item in node.truncate_stmt.relations:
                name = name_of(item.range_var)
                yield Fact("truncate", name, name, locks=True)
        case "update_stmt":
            name = name_of(node.update_stmt.relation)
            yield Fact("writes-rows", name, name)
            if not node.update_stmt.HasField("where_clause"):
                yield Fact("update-without-where", name, name)
        case "delete_stmt":
            name = name_of(node.delete_stmt.relation)
            yield Fact("writes-rows", name, name)
            if not node.delete_stmt.HasField("where_clause"):
                yield Fact("delete-without-where", name, name)
        case "insert_stmt":
            name = name_of(node.insert_stmt.relation)
            yield Fact("writes-rows", name, name)
        case "reindex_stmt":
            options = {item.def_elem.defname for item in node.reindex_stmt.params}
            if "concurrently" in options:
                yield Fact("concurrently", "reindex")
            elif node.reindex_stmt.HasField("relation"):
                yield Fact("reindex-not-concurrent", name_of(node.reindex_stmt.relation), locks=True)
        case "alter_enum_stmt":
            yield from _enum(node.alter_enum_stmt)
        case "transaction_stmt":
            kinds = ast.TransactionStmtKind
            if node.transaction_stmt.kind in (kinds.TRANS_STMT_BEGIN, kinds.TRANS_STMT_START):
                yield Fact("begins", "transaction")
            elif node.transaction_stmt.kind in (
                kinds.TRANS_STMT_COMMIT, kinds.TRANS_STMT_ROLLBACK, kinds.TRANS_STMT_PREPARE,
            ):  # fmt: skip
                yield Fact("ends", "transaction")
        case "variable_set_stmt" if node.variable_set_stmt.name == "lock_timeout":
            yield Fact("sets-lock-timeout", "lock_timeout")
        case "create_event_trig_stmt":
            yield Fact("superuser-only", f"event trigger {node.create_event_trig_stmt.trigname}")
        case "alter_system_stmt":
            yield Fact("superuser-only", "ALTER SYSTEM")
        case "create_trig_stmt":
            name = name_of(node.create_trig_stmt.relation)
            yield Fact("creates-trigger", name, name, locks=True)
        case "create_function_stmt":
            yield from _managed(node.create_function_stmt.funcname)
        case _:
            pass
    if kind not in ("create_function_stmt", "alter_enum_stmt"):
        yield from _texts(node)


def _texts(node: ast.Node) -> Iterator[Fact]:
    """All string constants: whether a new enum value is among them is seen with the whole file."""
    found = [text for text in _strings(node) if text]
    if found:
        yield Fact("uses-text", "\0".join(found))


def _strings(message: object) -> Iterator[str]:
    if isinstance(message, ast.A_Const):
        if message.WhichOneof("val") == "sval":
            yield message.sval.sval
        return
    fields = getattr(message, "ListFields", None)
    if fields is None:
        return
    for descriptor, value in fields():
        if descriptor.message_type is None:
            continue
        for inner in value if descriptor.is_repeated else (value,):
            yield from _strings(inner)


def _index(statement: ast.IndexStmt) -> Iterator[Fact]:
    table = name_of(statement.relation)
    name = f"index {statement.idxname or 'without a name'} on {table}"
    if statement.concurrent:
        yield Fact("concurrently", name)
    else:
        yield Fact("index-not-concurrent", name, table, locks=True)
    if not statement.if_not_exists:
        yield Fact("creates", name)


def _alter_table(statement: ast.AlterTableStmt) -> Iterator[Fact]:
    table = name_of(statement.relation)
    if statement.relation.schemaname in _MANAGED:
        yield Fact("managed-schema", table)
    if statement.objtype not in (ast.ObjectType.OBJECT_TABLE, ast.ObjectType.OBJECT_FOREIGN_TABLE):
        return
    for item in statement.cmds:
        command = item.alter_table_cmd
        about = f"{table}.{command.name}"
        yield Fact("alters", table, table, locks=True)
        match command.subtype:
            case ast.AlterTableType.AT_AddColumn:
                yield from _add_column(table, getattr(command, "def").column_def)
            case ast.AlterTableType.AT_AddConstraint:
                yield from _constraint(table, getattr(command, "def").constraint)
            case ast.AlterTableType.AT_ValidateConstraint:
                yield Fact("validates", about, table)
            case ast.AlterTableType.AT_SetNotNull:
                yield Fact("set-not-null", about, table)
            case ast.AlterTableType.AT_DropNotNull:
                yield Fact("drop-not-null", about, table)
            case ast.AlterTableType.AT_AlterColumnType:
                yield Fact("column-type-change", about, table)
            case ast.AlterTableType.AT_DropColumn:
                yield Fact("drop-column", about, table)
            case _:
                pass


def _add_column(table: str, column: ast.ColumnDef) -> Iterator[Fact]:
    about = f"{table}.{column.colname}"
    kind = _type(column)
    kinds = [item.constraint.contype for item in column.constraints]
    defaults = [
        item.constraint.raw_expr
        for item in column.constraints
        if item.constraint.contype == ast.ConstrType.CONSTR_DEFAULT
    ]
    default = defaults[0] if defaults else None
    is_filled = default is not None or ast.ConstrType.CONSTR_IDENTITY in kinds or kind in _SERIALS
    is_filled = is_filled or ast.ConstrType.CONSTR_GENERATED in kinds
    is_required = ast.ConstrType.CONSTR_NOTNULL in kinds or ast.ConstrType.CONSTR_PRIMARY in kinds
    if is_required and not is_filled:
        yield Fact("required-column", about, table)
    if kind in _SERIALS or ast.ConstrType.CONSTR_IDENTITY in kinds:
        yield Fact("serial-on-existing", about, table)
    elif default is not None and _is_volatile(default):
        yield Fact("volatile-default", about, table)
    if ast.ConstrType.CONSTR_GENERATED in kinds:
        yield Fact("stored-generated-column", about, table)
    for item in column.constraints:
        if item.constraint.contype != ast.ConstrType.CONSTR_CHECK:
            yield from _constraint(table, item.constraint, about)
    yield from _type_hints(table, column)


def _constraint(table: str, constraint: ast.Constraint, about: str = "") -> Iterator[Fact]:
    about = about or f"{table}.{constraint.conname or 'constraint'}"
    kinds = ast.ConstrType
    match constraint.contype:
        case kinds.CONSTR_FOREIGN | kinds.CONSTR_CHECK if constraint.skip_validation:
            yield Fact("adds-not-valid", about, table)
        case kinds.CONSTR_FOREIGN:
            yield Fact("fk-validates", about, table)
        case kinds.CONSTR_CHECK:
            yield Fact("check-validates", about, table)
        case kinds.CONSTR_UNIQUE | kinds.CONSTR_PRIMARY if not constraint.indexname:
            yield Fact("unique-builds-index", about, table)
        case kinds.CONSTR_EXCLUSION:
            yield Fact("exclusion-constraint", about, table)
        case _:
            pass


def _create_table(statement: ast.CreateStmt) -> Iterator[Fact]:
    table = name_of(statement.relation)
    if statement.relation.schemaname in _MANAGED:
        yield Fact("managed-schema", table)
    if not statement.if_not_exists:
        yield Fact("creates", table)
    for item in statement.table_elts:
        if item.WhichOneof("node") == "column_def":
            yield from _type_hints(table, item.column_def)


def _type_hints(table: str, column: ast.ColumnDef) -> Iterator[Fact]:
    about = f"{table}.{column.colname}"
    kind = _type(column)
    is_key = any(item.constraint.contype == ast.ConstrType.CONSTR_PRIMARY for item in column.constraints)
    match kind:
        case "bpchar":
            yield Fact("char-n", about)
        case "timestamp":
            yield Fact("timestamp-without-zone", about)
        case "json":
            yield Fact("json-not-jsonb", about)
        case "int4" | "serial" | "serial4" if is_key:
            yield Fact("int-key", about)
        case _:
            pass


def _type(column: ast.ColumnDef) -> str:
    names = column.type_name.names
    return names[-1].string.sval if names else ""


def _is_volatile(expression: ast.Node) -> bool:
    if expression.WhichOneof("node") == "func_call":
        return expression.func_call.funcname[-1].string.sval in _VOLATILE
    if expression.WhichOneof("node") == "type_cast":
        return _is_volatile(expression.type_cast.arg)
    return False


def _drop(statement: ast.DropStmt) -> Iterator[Fact]:
    kinds = ast.ObjectType
    for item in statement.objects:
        name = _dotted(item)
        match statement.remove_type:
            case kinds.OBJECT_INDEX:
                rule = "concurrently" if statement.concurrent else "index-drop-not-concurrent"
                yield Fact(rule, f"index {name}", locks=not statement.concurrent)
            case kinds.OBJECT_TABLE:
                name = name if "." in name else f"public.{name}"
                yield Fact("drop-table", name, name, locks=True)
            case kinds.OBJECT_SCHEMA:
                yield Fact("drop-schema", name)
            case kinds.OBJECT_FUNCTION:
                yield Fact("drop-function", name)
            case _:
                pass


def _dotted(item: ast.Node) -> str:
    match item.WhichOneof("node"):
        case "list":
            return ".".join(part.string.sval for part in item.list.items)
        case "string":
            return item.string.sval
        case "object_with_args":
            return ".".join(part.string.sval for part in item.object_with_args.objname)
        case _:
            return ""


def _rename(statement: ast.RenameStmt) -> Iterator[Fact]:
    table = name_of(statement.relation)
    match statement.rename_type:
        case ast.ObjectType.OBJECT_COLUMN:
            yield Fact("rename-column", f"{table}.{statement.subname}", table, locks=True)
        case ast.ObjectType.OBJECT_TABLE:
            yield Fact("rename-table", table, table, locks=True)
        case ast.ObjectType.OBJECT_SCHEMA:
            yield Fact("rename-schema", statement.subname)
        case _:
            pass


def _enum(statement: ast.AlterEnumStmt) -> Iterator[Fact]:
    if statement.old_val:
        return
    name = ".".join(part.string.sval for part in statement.type_name)
    yield Fact("enum-value", f"{name}.{statement.new_val}")
    if not statement.new_val_neighbor:
        yield Fact("enum-order", f"{name}.{statement.new_val}")


def _managed(name: Iterable[ast.Node]) -> Iterator[Fact]:
    parts = [part.string.sval for part in name]
    if len(parts) > 1 and parts[0] in _MANAGED:
        yield Fact("managed-schema", ".".join(parts))
