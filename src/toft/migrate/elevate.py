"""Pure: the statements that the hosted platform lets `postgres` run and plain Postgres does not.

The platform has a module in the server for them. Here our own runner recognises them by parsing, and lets the
superuser run what it has *written itself* from the values that it understood, in the same transaction (see
`permit.py`). The text of the file never reaches the superuser, and nothing is elevated that would give a
tenant more than the platform does. What is refused goes the ordinary way: the server's 42501 gets our reason.

Two kinds: publications of all tables or whole schemas, on every major; and everything that takes CREATEROLE,
before 16, where that attribute could become the operating system's user and `postgres` therefore lacks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from toft.migrate.batches import strip_comments
from toft.migrate.parser import (
    CURRENT_USER,
    AlterRole,
    AlterRoleSet,
    CommentOnRole,
    CreatePublication,
    CreateRole,
    DropRoles,
    GrantRoles,
    PublishSchemas,
    RenameRole,
    Said,
    SetParameter,
    parse_statement,
)
from toft.pg.quote import identifier, literal

TENANT = "postgres"

#: cheap signs that a statement is worth parsing
_ROLE_SIGN = re.compile(
    r"(?:create|alter|drop)\s+(?:role|user|group)\b|comment\s+on\s+role\b|(?:grant|revoke)\b(?!.*\bon\b)",
    re.IGNORECASE | re.DOTALL,
)
_PUBLICATION_SIGN = re.compile(
    r"(?:create|alter)\s+publication\b.*\b(?:all\s+tables|in\s+schema)\b", re.I | re.S
)
_SETTING_SIGN = re.compile(r"alter\s+(?:database|role|user)\b.*\bset\b", re.IGNORECASE | re.DOTALL)
_CUSTOM_NAME = re.compile(r"app(?:\.[a-z_][a-z0-9_]*)+", re.IGNORECASE)

_SERVICE_ROLES = frozenset({"anon", "authenticated", "service_role", "authenticator"})
_RESERVED = _SERVICE_ROLES | {"postgres", "dashboard_user", "pgbouncer", "public", "none"}
_RESERVED_PREFIXES = ("pg_", "supabase_", "pgsodium_", "pgtle_", "cli_login_", "toft")
#: what its holder gains by these, `postgres` has already
_GRANTABLE = frozenset({
    "anon", "authenticated", "service_role", "postgres", "pg_monitor", "pg_read_all_data",
    "pg_read_all_settings", "pg_read_all_stats", "pg_stat_scan_tables", "pg_signal_backend",
})  # fmt: skip
_FLAGS = {
    "canlogin": ("login", "nologin"),
    "inherit": ("inherit", "noinherit"),
    "createdb": ("createdb", "nocreatedb"),
}
_TOO_MUCH = {
    "superuser": "SUPERUSER",
    "isreplication": "REPLICATION",
    "bypassrls": "BYPASSRLS",
    "createrole": "CREATEROLE",
}


class Elevation(msgspec.Struct, frozen=True):
    """What the superuser runs instead. parameters: settings that `postgres` must be allowed to change."""

    what: str
    sql: tuple[str, ...]
    parameters: tuple[str, ...] = ()


class Refusal(msgspec.Struct, frozen=True):
    """Why a statement is not elevated although it asks for it: a sentence without a full stop."""

    reason: str


class _Refused(Exception):
    pass


def decide_elevation(statement: str, *, has_createrole: bool) -> Elevation | Refusal | None:
    """None: the statement runs as it is."""
    body = strip_comments(statement)
    is_role = not has_createrole and _ROLE_SIGN.match(body)
    if not is_role and not _PUBLICATION_SIGN.match(body):
        return None
    said = parse_statement(body)
    try:
        return _elevate(said) if said is not None else None
    except _Refused as refusal:
        return Refusal(str(refusal))


def custom_parameters(statements: Iterable[str]) -> dict[str, int]:
    """The `app.*` settings that statements give to databases and roles: they need a grant before that.

    Name → position of the first statement that names it.
    """
    found: dict[str, int] = {}
    for index, statement in enumerate(statements):
        body = strip_comments(statement)
        if _SETTING_SIGN.match(body):
            said = parse_statement(body)
            if isinstance(said, SetParameter | AlterRoleSet) and said.parameter:
                found.setdefault(said.parameter.lower(), index)
    return {name: index for name, index in found.items() if _CUSTOM_NAME.fullmatch(name)}


def _elevate(said: Said) -> Elevation | None:
    match said:
        case CreateRole():
            return _create_role(said)
        case AlterRole():
            return _alter_role(said)
        case AlterRoleSet():
            return _alter_role_set(said)
        case RenameRole(name, to):
            _check_own(name)
            _check_own(to)
            return Elevation("rename role", (f"alter role {identifier(name)} rename to {identifier(to)}",))
        case DropRoles(names, if_exists):
            for name in names:
                _check_own(name)
            sql = f"drop role {'if exists ' if if_exists else ''}{_list(names)}"
            return Elevation("drop role", (sql,))
        case CommentOnRole(name, comment):
            _check_own(name)
            return Elevation(
                "comment on role", (f"comment on role {identifier(name)} is {literal(comment)}",)
            )
        case GrantRoles():
            return _grant_roles(said)
        case CreatePublication(name, schemas, options):
            what = "for all tables" if schemas is None else f"for tables in schema {_list(schemas)}"
            given = ", ".join(f"{identifier(key)} = {literal(value)}" for key, value in options.items())
            create = f"create publication {identifier(name)} {what}" + (f" with ({given})" if given else "")
            return Elevation(f"create publication {what}", (create, *_hand_over(name)))
        case PublishSchemas(name, action, schemas):
            sql = f"alter publication {identifier(name)} {action} tables in schema {_list(schemas)}"
            return Elevation("publish tables in schema", (sql,))
        case SetParameter():
            return None


def _hand_over(publication: str) -> Iterator[str]:
    """Such a publication may only be given to a superuser. No code of the tenant's runs in between."""
    tenant = identifier(TENANT)
    yield f"alter role {tenant} superuser"
    yield f"alter publication {identifier(publication)} owner to {tenant}"
    yield f"alter role {tenant} nosuperuser"


def _create_role(said: CreateRole) -> Elevation:
    if _is_reserved(said.name) and said.name not in _RESERVED:
        raise _Refused(f"the name {said.name} is reserved")
    for role in said.member_of:
        _check_grantable(role)
    lists = [
        f"{words} {_list(_named(roles))}"
        for words, roles in (("in role", said.member_of), ("role", said.members), ("admin", said.admins))
        if roles
    ]
    parts = [f"create {said.kind} {identifier(said.name)}", *_options(said.options), *lists]
    return Elevation("create role", (" ".join(parts),))


def _alter_role(said: AlterRole) -> Elevation | None:
    if said.name in (CURRENT_USER, TENANT):
        return None  # its own password it may change
    _check_own(said.name)
    return Elevation(
        "alter role", (" ".join([f"alter role {identifier(said.name)}", *_options(said.options)]),)
    )


def _alter_role_set(said: AlterRoleSet) -> Elevation | None:
    if said.name in (CURRENT_USER, TENANT):
        return None
    if said.name not in _SERVICE_ROLES:
        _check_own(said.name)
    place = f" in database {identifier(said.database)}" if said.database else ""
    role = f"alter role {identifier(said.name)}{place}"
    if said.parameter is None:
        _check_own(said.name)
        return Elevation("alter role reset all", (f"{role} reset all",))
    parameter = ".".join(identifier(part) for part in said.parameter.split("."))
    if said.values is None:
        return Elevation("alter role reset", (f"{role} reset {parameter}",), (said.parameter,))
    values = ", ".join(literal(value) for value in said.values)
    return Elevation("alter role set", (f"{role} set {parameter} to {values}",), (said.parameter,))


def _grant_roles(said: GrantRoles) -> Elevation:
    for role in said.roles:
        if said.is_grant:
            _check_grantable(role)
        else:
            _check_own(role)
    verb, preposition = ("grant", "to") if said.is_grant else ("revoke", "from")
    # REVOKE ADMIN OPTION FOR names the option, too, and says false.
    admin = said.options.get("admin", False) if said.is_grant else "admin" in said.options
    if set(said.options) - {"admin"}:
        raise _Refused("INHERIT and SET options of a membership exist from Postgres 16 on")
    parts = [verb]
    if admin and not said.is_grant:
        parts.append("admin option for")
    parts += [_list(said.roles), preposition, _list(_named(said.members))]
    if admin and said.is_grant:
        if any(_is_reserved(role) for role in said.roles):
            raise _Refused(f"{', '.join(said.roles)} cannot be granted WITH ADMIN OPTION")
        parts.append("with admin option")
    if said.cascade:
        parts.append("cascade")
    return Elevation(f"{verb} role", (" ".join(parts),))


def _options(options: dict[str, bool | int | str | None]) -> Iterator[str]:
    for name, value in options.items():
        if name in _TOO_MUCH:
            if value is not False:
                raise _Refused(f"{_TOO_MUCH[name]} is not given before Postgres 16")
            yield f"no{_TOO_MUCH[name].lower()}"
        elif name in _FLAGS:
            yield _FLAGS[name][0 if value else 1]
        elif name == "connectionlimit" and isinstance(value, int):
            yield f"connection limit {value}"
        elif name == "password":
            yield "password null" if value is None else f"password {literal(str(value))}"
        elif name == "validUntil" and isinstance(value, str):
            yield f"valid until {literal(value)}"
        elif name != "sysid":  # which the server ignores
            raise _Refused(f"the option {name} is not understood")


def _is_reserved(role: str) -> bool:
    return role in _RESERVED or role.startswith(_RESERVED_PREFIXES)


def _check_own(role: str) -> None:
    if role == CURRENT_USER or _is_reserved(role):
        raise _Refused(f"{role or 'the current user'} is a reserved role")


def _check_grantable(role: str) -> None:
    if role not in _GRANTABLE and (role == CURRENT_USER or _is_reserved(role)):
        raise _Refused(f"membership in {role or 'the current user'} is not given to anybody")


def _named(roles: Iterable[str]) -> list[str]:
    """Who runs a migration is `postgres`; in the superuser's function the word would mean another."""
    return [TENANT if role == CURRENT_USER else role for role in roles]


def _list(names: Iterable[str]) -> str:
    return ", ".join(identifier(name) for name in names)
