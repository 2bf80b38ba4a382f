"""Asks Postgres what exists: one pipeline, one snapshot, one read-only transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from toft.pg.connection import Connection
from toft.pg.sqlstate import PostgresError
from toft.pg.transaction import transaction
from toft.pg.wire import Result, Statement
from toft.rest.schema import facts as ask
from toft.rest.schema.facts import Facts

#: Names print complete without a search path; the queries look dear, run once, and are not worth compiling.
_SETTINGS = Statement(
    b"select pg_catalog.set_config('search_path', '', true), pg_catalog.set_config('jit', 'off', true)"
)
_VERSION = Statement(b"select toft.schema_version()")
_HAS_VERSION = "select pg_catalog.to_regprocedure('toft.schema_version()') is not null"
_timezones = msgspec.json.Decoder(frozenset[str])


async def load_facts(
    connection: Connection,
    *,
    schemas: Sequence[str],
    extra_search_path: Sequence[str],
    hoisted_settings: Sequence[str],
    is_versioned: bool,
    server_version: int,
) -> Facts:
    """Everything for `build.py`. Raises what `Connection.pipeline` raises."""
    exposed = _array(schemas)
    roles = ask.ROLES % (ask.MAY_SET if server_version >= 15 else ask.MAY_NOT_SET)
    asked: list[tuple[str, Any, Statement]] = [
        ("tables", list[ask.TableRow], Statement(ask.TABLES, (exposed,))),
        ("primary_keys", list[ask.PrimaryKeyRow], Statement(ask.PRIMARY_KEYS)),
        ("foreign_keys", list[ask.ForeignKeyRow], Statement(ask.FOREIGN_KEYS)),
        ("views", list[ask.ViewRow], Statement(ask.VIEWS, (exposed, _array(extra_search_path)))),
        ("computed", list[ask.ComputedRow], Statement(ask.COMPUTED, (exposed,))),
        ("routines", list[ask.RoutineRow], Statement(ask.ROUTINES, (exposed, _array(hoisted_settings)))),
        ("representations", list[ask.RepresentationRow], Statement(ask.REPRESENTATIONS)),
        ("handlers", list[ask.HandlerRow], Statement(ask.HANDLERS, (exposed,))),
        ("roles", list[ask.RoleRow], Statement(roles)),
    ]
    # Before 14 there are no SQL bodies to look into, and the question cannot be put.
    reads_headers = Statement(ask.READS_HEADERS if server_version >= 14 else b"select true")
    statements = [_SETTINGS, *(statement for _, _, statement in asked), reads_headers]
    if is_versioned:
        statements.append(_VERSION)
    results = await connection.pipeline(transaction(statements, isolation="repeatable read", read_only=True))
    answers = {
        name: msgspec.json.decode(_value(result), type=row_type)
        for (name, row_type, _), result in zip(asked, results[2:], strict=False)
    }
    after = 2 + len(asked)
    version = _value(results[after + 1]).decode() if is_versioned else ""
    return Facts(version=version, reads_headers=_value(results[after]) == b"t", **answers)


async def load_timezones(connection: Connection) -> frozenset[str]:
    """Names of time zones. Slow, since the server reads a directory, and rarely needed."""
    [result] = await connection.pipeline([Statement(ask.TIMEZONES)])
    return _timezones.decode(_value(result))


async def has_version(connection: Connection) -> bool:
    """Whether this database counts its DDL for us, so that a plan can be checked as it runs."""
    try:
        [[answer]] = await connection.query(_HAS_VERSION)
    except PostgresError:
        return False
    return answer == "t"


def _value(result: Result) -> bytes:
    value = result.rows[0][0]
    return b"null" if value is None else value


def _array(names: Sequence[str]) -> bytes:
    escaped = (name.replace("\\", "\\\\").replace('"', '\\"') for name in names)
    return ("{" + ",".join(f'"{name}"' for name in escaped) + "}").encode()
