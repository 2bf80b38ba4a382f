"""Pure: the one door to the SQL parser (libpg_query, by postgast): what statements say, as values.

Only what `elevate.py` decides about is read. Whatever is not understood completely is None: the statement
then takes the ordinary way, and the server answers it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import postgast
from postgast import pg_query_pb2 as ast

#: `current_user` and its like, as a role's name cannot be: what it means depends on who runs the statement
CURRENT_USER = ""


class CreateRole(msgspec.Struct, frozen=True):
    """options: attribute → value; a flag is a bool, the rest text. kind: `role`, `user` or `group`."""

    kind: str
    name: str
    options: dict[str, bool | int | str | None]
    member_of: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()


class AlterRole(msgspec.Struct, frozen=True):
    """Attributes of a role."""

    name: str
    options: dict[str, bool | int | str | None]


class AlterRoleSet(msgspec.Struct, frozen=True):
    """A role's setting. values None: reset it; parameter None: reset all."""

    name: str
    database: str | None
    parameter: str | None
    values: tuple[str, ...] | None


class RenameRole(msgspec.Struct, frozen=True):
    name: str
    to: str


class DropRoles(msgspec.Struct, frozen=True):
    names: tuple[str, ...]
    if_exists: bool


class CommentOnRole(msgspec.Struct, frozen=True):
    name: str
    comment: str


class GrantRoles(msgspec.Struct, frozen=True):
    """Also REVOKE, and ALTER GROUP ... ADD or DROP USER. options: `admin`, `inherit`, `set`."""

    roles: tuple[str, ...]
    members: tuple[str, ...]
    is_grant: bool
    options: dict[str, bool]
    cascade: bool = False


class CreatePublication(msgspec.Struct, frozen=True):
    """For all tables (schemas None) or for those of whole schemas."""

    name: str
    schemas: tuple[str, ...] | None
    options: dict[str, str]


class PublishSchemas(msgspec.Struct, frozen=True):
    """ALTER PUBLICATION ... ADD, SET or DROP TABLES IN SCHEMA."""

    name: str
    action: str
    schemas: tuple[str, ...]


class SetParameter(msgspec.Struct, frozen=True):
    """ALTER DATABASE ... SET, ALTER ROLE ... SET: only which parameter."""

    parameter: str


type Said = (
    CreateRole
    | AlterRole
    | AlterRoleSet
    | RenameRole
    | DropRoles
    | CommentOnRole
    | GrantRoles
    | CreatePublication
    | PublishSchemas
    | SetParameter
)


class _NotUnderstood(Exception):
    """A form that we do not read."""


def parse_statement(sql: str) -> Said | None:
    """What a single statement says; None when it is another kind, several statements, or no SQL."""
    try:
        tree = postgast.parse(sql)
    except (postgast.PgQueryError, UnicodeEncodeError):
        return None
    if len(tree.stmts) != 1:
        return None
    try:
        return _read(tree.stmts[0].stmt)
    except _NotUnderstood:
        return None


def _read(node: ast.Node) -> Said | None:
    match node.WhichOneof("node"):
        case "create_role_stmt":
            return _create_role(node.create_role_stmt)
        case "alter_role_stmt":
            return _alter_role(node.alter_role_stmt)
        case "alter_role_set_stmt":
            return _alter_role_set(node.alter_role_set_stmt)
        case "rename_stmt" if node.rename_stmt.rename_type == ast.ObjectType.OBJECT_ROLE:
            return RenameRole(node.rename_stmt.subname, node.rename_stmt.newname)
        case "drop_role_stmt":
            return DropRoles(_roles(node.drop_role_stmt.roles), node.drop_role_stmt.missing_ok)
        case "comment_stmt" if node.comment_stmt.objtype == ast.ObjectType.OBJECT_ROLE:
            return CommentOnRole(node.comment_stmt.object.string.sval, node.comment_stmt.comment)
        case "grant_role_stmt":
            return _grant_roles(node.grant_role_stmt)
        case "create_publication_stmt":
            return _create_publication(node.create_publication_stmt)
        case "alter_publication_stmt":
            return _alter_publication(node.alter_publication_stmt)
        case "alter_database_set_stmt":
            name = node.alter_database_set_stmt.setstmt.name
            return SetParameter(name) if name else None
        case _:
            return None


def _create_role(statement: ast.CreateRoleStmt) -> CreateRole:
    kind = {
        ast.RoleStmtType.ROLESTMT_ROLE: "role",
        ast.RoleStmtType.ROLESTMT_USER: "user",
        ast.RoleStmtType.ROLESTMT_GROUP: "group",
    }[statement.stmt_type]
    options: dict[str, bool | int | str | None] = {}
    lists: dict[str, tuple[str, ...]] = {}
    for item in statement.options:
        option = item.def_elem
        if option.defname in {"addroleto", "rolemembers", "adminmembers"}:
            lists[option.defname] = lists.get(option.defname, ()) + _roles(option.arg.list.items)
        else:
            options[option.defname] = _value(option)
    return CreateRole(
        kind,
        statement.role,
        options,
        member_of=lists.get("addroleto", ()),
        members=lists.get("rolemembers", ()),
        admins=lists.get("adminmembers", ()),
    )


def _alter_role(statement: ast.AlterRoleStmt) -> AlterRole | GrantRoles:
    name = _role(statement.role)
    options = [item.def_elem for item in statement.options]
    if any(option.defname == "rolemembers" for option in options):
        members = tuple(role for option in options for role in _roles(option.arg.list.items))
        return GrantRoles((name,), members, is_grant=statement.action > 0, options={})
    return AlterRole(name, {option.defname: _value(option) for option in options})


def _alter_role_set(statement: ast.AlterRoleSetStmt) -> AlterRoleSet | None:
    if not statement.HasField("role"):
        return None  # ALTER ROLE ALL
    change = statement.setstmt
    values: tuple[str, ...] | None
    match change.kind:
        case ast.VariableSetKind.VAR_SET_VALUE:
            values = tuple(_constant(argument) for argument in change.args)
        case ast.VariableSetKind.VAR_SET_DEFAULT | ast.VariableSetKind.VAR_RESET:
            values = None
        case ast.VariableSetKind.VAR_RESET_ALL:
            return AlterRoleSet(_role(statement.role), statement.database or None, None, None)
        case _:
            return None
    return AlterRoleSet(_role(statement.role), statement.database or None, change.name, values)


def _grant_roles(statement: ast.GrantRoleStmt) -> GrantRoles | None:
    if statement.HasField("grantor"):
        return None
    options: dict[str, bool] = {}
    for item in statement.opt:
        value = _value(item.def_elem)
        if not isinstance(value, bool):
            return None
        options[item.def_elem.defname] = value
    return GrantRoles(
        tuple(item.access_priv.priv_name for item in statement.granted_roles),
        _roles(statement.grantee_roles),
        is_grant=statement.is_grant,
        options=options,
        cascade=statement.behavior == ast.DropBehavior.DROP_CASCADE,
    )


def _create_publication(statement: ast.CreatePublicationStmt) -> CreatePublication | None:
    if not statement.for_all_tables and not statement.pubobjects:
        return None
    schemas = None if statement.for_all_tables else _schemas(statement.pubobjects)
    if schemas == ():
        return None
    options: dict[str, str] = {}
    for item in statement.options:
        value = _value(item.def_elem)
        options[item.def_elem.defname] = "true" if value is None else str(value).lower()
    return CreatePublication(statement.pubname, schemas, options)


def _alter_publication(statement: ast.AlterPublicationStmt) -> PublishSchemas | None:
    action = {
        ast.AlterPublicationAction.AP_AddObjects: "add",
        ast.AlterPublicationAction.AP_DropObjects: "drop",
        ast.AlterPublicationAction.AP_SetObjects: "set",
    }.get(statement.action)
    schemas = _schemas(statement.pubobjects)
    return PublishSchemas(statement.pubname, action, schemas) if action and schemas else None


def _schemas(objects: Iterable[ast.Node]) -> tuple[str, ...]:
    """The schemas that are published as a whole; empty when there is anything else among them."""
    names: list[str] = []
    for item in objects:
        published = item.publication_obj_spec
        if published.pubobjtype != ast.PublicationObjSpecType.PUBLICATIONOBJ_TABLES_IN_SCHEMA:
            return ()
        names.append(published.name)
    return tuple(names)


def _roles(items: Iterable[ast.Node]) -> tuple[str, ...]:
    return tuple(_role(item.role_spec) for item in items)


def _role(spec: ast.RoleSpec) -> str:
    match spec.roletype:
        case ast.RoleSpecType.ROLESPEC_CSTRING:
            return spec.rolename
        case (
            ast.RoleSpecType.ROLESPEC_CURRENT_USER
            | ast.RoleSpecType.ROLESPEC_SESSION_USER
            | ast.RoleSpecType.ROLESPEC_CURRENT_ROLE
        ):
            return CURRENT_USER
        case _:
            raise _NotUnderstood


def _value(option: ast.DefElem) -> bool | int | str | None:
    if not option.HasField("arg"):
        return None
    match option.arg.WhichOneof("node"):
        case "boolean":
            return option.arg.boolean.boolval
        case "integer":
            return option.arg.integer.ival
        case "string":
            return option.arg.string.sval
        case _:
            raise _NotUnderstood


def _constant(argument: ast.Node) -> str:
    constant = argument.a_const
    match constant.WhichOneof("val"):
        case "sval":
            return constant.sval.sval
        case "ival":
            return str(constant.ival.ival)
        case "fval":
            return constant.fval.fval
        case "boolval":
            return str(constant.boolval.boolval).lower()
        case _:
            raise _NotUnderstood
