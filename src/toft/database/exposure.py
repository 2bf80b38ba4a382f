"""Who may do what to which table through the API: rights and row level security, role by role."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from toft.migrate.history import array
from toft.pg.connection import Connection
from toft.pg.wire import Statement

_QUESTION = """\
with rel as (
  select c.*, n.nspname from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname !~ '^(pg_|supabase_)'
    and n.nspname <> all (array[
    'information_schema', 'auth', 'storage', 'realtime', '_realtime', 'vault', 'extensions', 'graphql',
    'graphql_public', 'net', 'cron', 'pgbouncer', 'pgmq', 'pgsodium', 'toft', 'toft_permit'])
    and not c.relispartition),
may as (
  select rel.oid, r.role, a.action,
    has_schema_privilege(r.role, rel.relnamespace, 'usage')
      and has_table_privilege(r.role, rel.oid, a.action) as is_granted,
    exists (select from pg_policy as p where p.polrelid = rel.oid and p.polpermissive
      and (p.polcmd = '*' or p.polcmd = case a.action when 'select' then 'r' when 'insert' then 'a'
        when 'update' then 'w' else 'd' end)
      and exists (select from unnest(p.polroles) as q (role) where q.role = 0
        or pg_has_role(r.role, q.role, 'member'))) as has_policy
  from rel cross join (values ('anon'), ('authenticated')) as r (role)
  cross join (values ('select'), ('insert'), ('update'), ('delete')) as a (action))
select coalesce(json_agg(json_build_object(
  'relation', rel.nspname || '.' || rel.relname,
  'kind', case rel.relkind when 'v' then 'view' when 'm' then 'matview' when 'f' then 'foreign'
    else 'table' end,
  'schema_exposed', rel.nspname = any ($1::text[]), 'rls', rel.relrowsecurity,
  'forced', rel.relforcerowsecurity,
  'roles', (select json_object_agg(by_role.role, by_role.actions) from (
    select may.role, (json_object_agg(may.action, case when not may.is_granted then 'none'
      when not rel.relrowsecurity then 'all' when may.has_policy then 'policy' else 'none' end)::jsonb
      || jsonb_build_object('truncate', has_table_privilege(may.role, rel.oid, 'truncate'))) as actions
    from may where may.oid = rel.oid group by may.role) as by_role),
  'policies', coalesce((select json_agg(p.polname order by p.polname) from pg_policy as p
    where p.polrelid = rel.oid), '[]')
) order by rel.nspname, rel.relname), '[]') from rel
"""


class Exposure(msgspec.Struct, frozen=True):
    """What a relation lets the API's roles do: `all`, `policy` (row level security decides) or `none`."""

    relation: str
    kind: str
    schema_exposed: bool
    rls: bool
    forced: bool
    roles: dict[str, dict[str, str | bool]]
    policies: list[str]


async def read_exposure(session: Connection, exposed: Sequence[str]) -> list[Exposure]:
    """All relations of the project, by name."""
    [result] = await session.pipeline([Statement(_QUESTION.encode(), (array(exposed),))])
    [[raw]] = result.rows
    return msgspec.json.decode(raw or b"[]", type=list[Exposure])
