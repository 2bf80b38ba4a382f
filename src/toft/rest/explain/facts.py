"""Pure: what the catalogue is asked after a failure, as the role that failed, and what it answers."""

from __future__ import annotations

from typing import Final

import msgspec

COMMANDS: Final = {"r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE", "*": "ALL"}


class Policy(msgspec.Struct, frozen=True):
    """A policy. applies: to the role that asked. using, check: expressions as Postgres prints them."""

    name: str
    #: of pg_policy: r, a, w, d, *
    command: str
    is_permissive: bool
    roles: tuple[str, ...]
    applies: bool
    using: str | None
    check: str | None


class UniqueIndex(msgspec.Struct, frozen=True):
    """A unique index. columns: a name, or None for an expression. predicate: of a partial one."""

    name: str
    columns: tuple[str | None, ...]
    predicate: str | None


class Relation(msgspec.Struct, frozen=True):
    """A relation or sequence as the role sees it. rights: privileges that the role has on all of it.

    column_rights: those that it has on some column at least.
    """

    schema: str
    name: str
    kind: str
    has_row_security: bool
    is_security_active: bool
    may_use_schema: bool
    rights: tuple[str, ...]
    column_rights: tuple[str, ...]
    policies: tuple[Policy, ...]
    unique: tuple[UniqueIndex, ...]

    @property
    def shown(self) -> str:
        return f"{self.schema}.{self.name}"


class Routine(msgspec.Struct, frozen=True):
    """A function as the role sees it."""

    schema: str
    name: str
    signature: str
    may_execute: bool
    may_use_schema: bool


#: every relation of the name $1
RELATIONS: Final = b"""
select coalesce(pg_catalog.json_agg(x), '[]') from (
  select n.nspname as schema, c.relname as name, c.relkind as kind,
    c.relrowsecurity as has_row_security,
    c.relkind in ('r', 'p') and pg_catalog.row_security_active(c.oid) as is_security_active,
    pg_catalog.has_schema_privilege(n.oid, 'usage') as may_use_schema,
    coalesce((select pg_catalog.json_agg(p) from unnest('{select,insert,update,delete}'::text[]) p
              where c.relkind <> 'S' and pg_catalog.has_table_privilege(c.oid, p)), '[]') as rights,
    coalesce((select pg_catalog.json_agg(p) from unnest('{select,insert,update}'::text[]) p
              where c.relkind <> 'S' and pg_catalog.has_any_column_privilege(c.oid, p)), '[]')
      as column_rights,
    coalesce((select pg_catalog.json_agg(pg_catalog.json_build_object(
        'name', p.polname, 'command', p.polcmd, 'is_permissive', p.polpermissive,
        'roles', case when 0 = any (p.polroles) then '["public"]' else (
          select pg_catalog.json_agg(pg_catalog.pg_get_userbyid(o)) from unnest(p.polroles) o) end,
        'applies', 0 = any (p.polroles) or (
          select bool_or(pg_catalog.pg_has_role(o, 'usage')) from unnest(p.polroles) o),
        'using', pg_catalog.pg_get_expr(p.polqual, p.polrelid),
        'check', pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid)) order by p.polname)
      from pg_catalog.pg_policy p where p.polrelid = c.oid), '[]') as policies,
    coalesce((select pg_catalog.json_agg(pg_catalog.json_build_object(
        'name', ic.relname,
        'columns', (select pg_catalog.json_agg(a.attname order by k.at)
                    from unnest(i.indkey::int2[]) with ordinality k(attnum, at)
                    left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
                      and k.attnum > 0
                    where k.at <= i.indnkeyatts),
        'predicate', pg_catalog.pg_get_expr(i.indpred, i.indrelid)) order by ic.relname)
      from pg_catalog.pg_index i join pg_catalog.pg_class ic on ic.oid = i.indexrelid
      where i.indrelid = c.oid and i.indisunique and i.indisvalid), '[]') as unique
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relname = $1 and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
    and n.nspname !~ '^(pg_|information_schema$)'
  order by n.nspname
) x
"""

#: every function of the name $1
ROUTINES: Final = b"""
select coalesce(pg_catalog.json_agg(x), '[]') from (
  select n.nspname as schema, p.proname as name,
    p.proname || '(' || pg_catalog.pg_get_function_identity_arguments(p.oid) || ')' as signature,
    pg_catalog.has_function_privilege(p.oid, 'execute') as may_execute,
    pg_catalog.has_schema_privilege(n.oid, 'usage') as may_use_schema
  from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
  where p.proname = $1
    and n.nspname !~ '^(pg_|information_schema$)'
  order by n.nspname, 3
) x
"""

#: schema and name of what is not in the schemas $1
OTHER_NAMES: Final = b"""
select coalesce(pg_catalog.json_agg(pg_catalog.json_build_array(x.nspname, x.relname)), '[]') from (
  select n.nspname, c.relname
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
    and n.nspname !~ '^(pg_|information_schema$)'
    and n.nspname <> all ($1::text[])
  limit 1000
) x
"""

relations = msgspec.json.Decoder(tuple[Relation, ...])
routines = msgspec.json.Decoder(tuple[Routine, ...])
other_names = msgspec.json.Decoder(tuple[tuple[str, str], ...])
