"""What a run may be watched by: after each statement, what the server says of it, in the same transaction.

The question goes between the statements of a pipeline, so that the file is sent as it always is. It names
everything with its schema, since a file may have emptied the search path, and reads only what any role may.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from toft.migrate.project import SqlFile
from toft.pg.wire import Result, Statement

_QUESTION = Statement(b"""\
select pg_catalog.json_build_object(
  'at', extract(epoch from pg_catalog.clock_timestamp()),
  'locks', coalesce((
    select pg_catalog.json_agg(distinct pg_catalog.jsonb_build_object(
      'oid', c.oid::pg_catalog.int8, 'schema', n.nspname, 'name', c.relname, 'kind', c.relkind, 'mode',
      l.mode, 'file', pg_catalog.pg_relation_filenode(c.oid)::pg_catalog.int8, 'bytes', case when c.relkind
      in ('r', 'm') then pg_catalog.pg_relation_size(c.oid) end))
    from pg_catalog.pg_locks as l
    join pg_catalog.pg_class as c on c.oid = l.relation
    join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
    where l.pid = pg_catalog.pg_backend_pid() and l.locktype = 'relation' and l.granted
      and l.mode not in ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')
      and n.nspname !~ '^pg_' and n.nspname <> 'toft'
      and c.relkind in ('r', 'p', 'm', 'v', 'f')), '[]'),
  'rows', coalesce((
    select pg_catalog.json_agg(pg_catalog.json_build_object(
      'schema', s.schemaname, 'name', s.relname,
      'inserted', s.n_tup_ins, 'updated', s.n_tup_upd, 'deleted', s.n_tup_del))
    from pg_catalog.pg_stat_xact_user_tables as s
    where s.schemaname <> 'toft' and (s.n_tup_ins + s.n_tup_upd + s.n_tup_del) > 0), '[]'))""")


class HeldLock(msgspec.Struct, frozen=True):
    """A lock on a relation. file: the number of the file that holds its rows now; another after a rewrite."""

    oid: int
    schema: str
    name: str
    kind: str
    mode: str
    file: int | None = None
    bytes: int | None = None


class TouchedRows(msgspec.Struct, frozen=True):
    """What the transaction has done to a table's rows until now."""

    schema: str
    name: str
    inserted: int
    updated: int
    deleted: int


class Seen(msgspec.Struct, frozen=True):
    """at: seconds since 1970 on the server's clock."""

    at: float
    locks: tuple[HeldLock, ...] = ()
    rows: tuple[TouchedRows, ...] = ()


class Watcher(Protocol):
    """Is told of files and statements as they run."""

    def began(self, file: SqlFile, statements: int, transaction: str) -> None:
        """A file begins. transaction: `one`, `split` or `per_statement`."""
        ...

    def saw(self, file: SqlFile, index: int, seen: Seen, tag: str) -> None:
        """A statement was carried out. tag: the server's word on it."""
        ...

    def ended(self, file: SqlFile) -> None:
        """All of the file was carried out."""
        ...


def question() -> Statement:
    """The statement that asks."""
    return _QUESTION


def read(result: Result) -> Seen:
    """What it answered."""
    [[answer]] = result.rows
    return msgspec.json.decode(answer or b"{}", type=Seen)


def describe(value: Any) -> Any:
    """A value of this module as plain JSON."""
    return msgspec.to_builtins(value)
