"""A statement of ours that `postgres` may have the superuser run, once it was written down here.

The superuser keeps a table of statements that `elevate.py` has written, and a SECURITY DEFINER function that
runs one by its number. So an elevated statement happens inside the file's own transaction, with its place in
the order, and is rolled back with it. There is nothing to steal: the function takes a number, not SQL, and
what it can run is what this very file asks for. Schema and function are gone again when the file is done.
"""

from __future__ import annotations

from collections.abc import Sequence

from toft.migrate.elevate import Elevation
from toft.pg.connection import Connection
from toft.pg.quote import literal

_OPEN = """\
create schema toft_permit;
create table toft_permit.permitted (
  number integer primary key, statements text[] not null, parameters text[] not null);
create function toft_permit.carry_out(wanted integer) returns void
language plpgsql security definer
set search_path = '' set standard_conforming_strings = on as $$
declare
  parameter text;
  statement text;
begin
  for parameter in select unnest(p.parameters) from toft_permit.permitted p where p.number = wanted loop
    if not has_parameter_privilege('postgres', parameter, 'set') and not exists (
      select from pg_catalog.pg_settings s where s.name = lower(parameter) and s.context = 'user')
    then
      raise exception using errcode = '42501',
        message = format('permission denied to set parameter "%s"', parameter);
    end if;
  end loop;
  for statement in select unnest(p.statements) from toft_permit.permitted p where p.number = wanted loop
    execute statement;
  end loop;
end $$;
revoke all on function toft_permit.carry_out(integer) from public;
grant execute on function toft_permit.carry_out(integer) to postgres;
grant usage on schema toft_permit to postgres;
"""
_CLOSE = "drop schema if exists toft_permit cascade"


async def open_permits(admin: Connection, elevations: Sequence[Elevation]) -> None:
    """Write them down under their positions, from 0."""
    rows = ",\n".join(
        f"({number}, {_array(elevation.sql)}, {_array(elevation.parameters)})"
        for number, elevation in enumerate(elevations)
    )
    await admin.script(
        f"begin;\n{_CLOSE};\n{_OPEN}\ninsert into toft_permit.permitted values {rows};\ncommit;"
    )


async def close_permits(admin: Connection) -> None:
    """No permit is left."""
    await admin.script(_CLOSE)


def call(number: int) -> str:
    """The expression that has the statement with this number carried out."""
    return f"toft_permit.carry_out({number})"


def _array(texts: Sequence[str]) -> str:
    return f"array[{', '.join(map(literal, texts))}]::text[]"
