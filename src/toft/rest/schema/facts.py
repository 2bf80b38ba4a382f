"""Pure: what Postgres was asked for the schema cache: the queries, and the rows that they answer as JSON.

Every name in an answer is complete, since the search path is empty while it is asked. Each query gives one
value, a JSON array of its row's type.
"""

from __future__ import annotations

from typing import Final

import msgspec


class TableRow(msgspec.Struct):
    oid: int
    schema: str
    name: str
    kind: str
    comment: str | None
    #: pg_relation_is_updatable: 4 update, 8 insert, 16 delete
    events: int
    primary_key: list[str]
    columns: list[tuple[str, str, str, bool, str | None, int | None, list[str], str | None, int]]


class ForeignKeyRow(msgspec.Struct):
    constraint: str
    oid: int
    table: tuple[str, str]
    foreign_oid: int
    foreign: tuple[str, str]
    columns: list[tuple[str, int, str, int]]
    is_unique: bool


class PrimaryKeyRow(msgspec.Struct):
    oid: int
    columns: list[tuple[str, int]]


class ViewRow(msgspec.Struct):
    oid: int
    schema: str
    name: str
    is_exposed: bool
    rule: str
    columns: list[tuple[int, str]]


class ComputedRow(msgspec.Struct):
    function: tuple[str, str]
    origin: tuple[str, str]
    target: tuple[str, str]
    is_single: bool


class RoutineRow(msgspec.Struct):
    oid: int
    schema: str
    name: str
    comment: str | None
    parameters: list[tuple[str, str, str, bool, bool]]
    returns: tuple[str, str]
    is_set: bool
    is_composite: bool
    is_domain: bool
    volatility: str
    settings: list[str]


class RepresentationRow(msgspec.Struct):
    source: str
    target: str
    function: str


class HandlerRow(msgspec.Struct):
    function: tuple[str, str]
    #: null: any row
    target: tuple[str, str] | None
    media_type: str


class RoleRow(msgspec.Struct):
    role: str
    settings: list[tuple[str, str]]


class Facts(msgspec.Struct):
    """All answers, read in one snapshot."""

    version: str
    tables: list[TableRow]
    primary_keys: list[PrimaryKeyRow]
    foreign_keys: list[ForeignKeyRow]
    views: list[ViewRow]
    computed: list[ComputedRow]
    routines: list[RoutineRow]
    representations: list[RepresentationRow]
    handlers: list[HandlerRow]
    roles: list[RoleRow]
    reads_headers: bool


# $1 is the array of exposed schemas in every query that has it.

TABLES: Final = b"""
with recursive plain(oid, base) as (
  select oid, oid from pg_catalog.pg_type where typtype <> 'd'
  union all
  select d.oid, p.base from pg_catalog.pg_type d join plain p on d.typbasetype = p.oid where d.typtype = 'd'
), relation as (
  select c.oid, n.nspname, c.relname, c.relkind
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname = any ($1::text[]) and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
), field as (
  select a.attrelid, pg_catalog.json_agg(pg_catalog.json_build_array(
    a.attname,
    case when t.typtype = 'd' and b.typnamespace = 'pg_catalog'::regnamespace
           then pg_catalog.format_type(p.base, null)
         when t.typtype <> 'd' and t.typnamespace = 'pg_catalog'::regnamespace
           then pg_catalog.format_type(a.atttypid, null)
         else pg_catalog.format_type(a.atttypid, a.atttypmod) end,
    pg_catalog.format_type(a.atttypid, a.atttypmod),
    not (a.attnotnull or t.typtype = 'd' and t.typnotnull),
    case when t.typtype = 'd' and d.adbin is null then pg_catalog.pg_get_expr(t.typdefaultbin, 0)
         when a.attidentity = 'd' then pg_catalog.format('nextval(%L)', (
           select s.objid::regclass from pg_catalog.pg_depend s
           where s.refobjid = a.attrelid and s.refobjsubid = a.attnum and s.deptype = 'i'
             and s.classid = 'pg_catalog.pg_class'::regclass limit 1))
         when a.attgenerated <> '' then null
         else pg_catalog.pg_get_expr(d.adbin, d.adrelid) end,
    case when p.base in ('varchar'::regtype, 'bpchar'::regtype)
           and coalesce(nullif(a.atttypmod, -1), t.typtypmod) > 4
         then coalesce(nullif(a.atttypmod, -1), t.typtypmod) - 4
         when p.base in ('bit'::regtype, 'varbit'::regtype)
         then nullif(coalesce(nullif(a.atttypmod, -1), t.typtypmod), -1) end,
    coalesce((select pg_catalog.json_agg(e.enumlabel order by e.enumsortorder)
              from pg_catalog.pg_enum e where e.enumtypid = p.base), '[]'),
    pg_catalog.col_description(a.attrelid, a.attnum),
    a.attnum
  ) order by a.attnum) as columns
  from pg_catalog.pg_attribute a
  join relation r on r.oid = a.attrelid
  join pg_catalog.pg_type t on t.oid = a.atttypid
  join plain p on p.oid = t.oid
  join pg_catalog.pg_type b on b.oid = p.base
  left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where a.attnum > 0 and not a.attisdropped
  group by a.attrelid
)
select coalesce(pg_catalog.json_agg(x), '[]') from (
  select r.oid::bigint as oid, r.nspname as schema, r.relname as name, r.relkind as kind,
    pg_catalog.obj_description(r.oid, 'pg_class') as comment,
    case when r.relkind in ('r', 'p') then 28
         when r.relkind = 'm' then 0
         else pg_catalog.pg_relation_is_updatable(r.oid, true) end as events,
    coalesce((select pg_catalog.json_agg(a.attname order by a.attname)
              from pg_catalog.pg_constraint k
              join pg_catalog.pg_attribute a on a.attrelid = r.oid and a.attnum = any (k.conkey)
              where k.conrelid = r.oid and k.contype = 'p' and r.relkind in ('r', 'p')), '[]') as primary_key,
    coalesce(f.columns, '[]') as columns
  from relation r left join field f on f.attrelid = r.oid
  order by 2, 3
) x
"""

PRIMARY_KEYS: Final = b"""
select coalesce(pg_catalog.json_agg(x), '[]') from (
  select k.conrelid::bigint as oid,
    (select pg_catalog.json_agg(pg_catalog.json_build_array(a.attname, a.attnum) order by o.at)
     from unnest(k.conkey) with ordinality o(attnum, at)
     join pg_catalog.pg_attribute a on a.attrelid = k.conrelid and a.attnum = o.attnum) as columns
  from pg_catalog.pg_constraint k where k.contype = 'p' and k.conrelid <> 0
) x
"""

FOREIGN_KEYS: Final = b"""
select coalesce(pg_catalog.json_agg(x), '[]') from (
  select k.conname as constraint,
    k.conrelid::bigint as oid, pg_catalog.json_build_array(n.nspname, c.relname) as table,
    k.confrelid::bigint as foreign_oid, pg_catalog.json_build_array(fn.nspname, fc.relname) as foreign,
    (select pg_catalog.json_agg(
       pg_catalog.json_build_array(a.attname, a.attnum, b.attname, b.attnum) order by o.at)
     from unnest(k.conkey, k.confkey) with ordinality o(here, there, at)
     join pg_catalog.pg_attribute a on a.attrelid = k.conrelid and a.attnum = o.here
     join pg_catalog.pg_attribute b on b.attrelid = k.confrelid and b.attnum = o.there) as columns,
    exists (select from pg_catalog.pg_constraint u
            where u.conrelid = k.conrelid and u.contype in ('p', 'u')
              and u.conkey @> k.conkey and u.conkey <@ k.conkey) as is_unique
  from pg_catalog.pg_constraint k
  join pg_catalog.pg_class c on c.oid = k.conrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  join pg_catalog.pg_class fc on fc.oid = k.confrelid
  join pg_catalog.pg_namespace fn on fn.oid = fc.relnamespace
  where k.contype = 'f' and k.conparentid = 0
  order by k.conrelid, k.conname
) x
"""

# $2 are the schemas whose views are looked through, besides the exposed ones.
VIEWS: Final = b"""
select coalesce(pg_catalog.json_agg(x), '[]') from (
  select c.oid::bigint as oid, n.nspname as schema, c.relname as name,
    n.nspname = any ($1::text[]) as is_exposed,
    w.ev_action::text as rule,
    (select pg_catalog.json_agg(pg_catalog.json_build_array(a.attnum, a.attname) order by a.attnum)
     from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attnum > 0) as columns
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  join pg_catalog.pg_rewrite w on w.ev_class = c.oid and w.ev_type = '1'
  where c.relkind in ('v', 'm') and n.nspname = any ($1::text[] || $2::text[])
    -- the views of extensions say nothing of the user's keys
    and not exists (select from pg_catalog.pg_depend e
                    where e.classid = 'pg_catalog.pg_class'::regclass and e.objid = c.oid and e.deptype = 'e')
) x
"""

COMPUTED: Final = b"""
select coalesce(pg_catalog.json_agg(x), '[]') from (
  select pg_catalog.json_build_array(pn.nspname, p.proname) as function,
    pg_catalog.json_build_array(an.nspname, ac.relname) as origin,
    pg_catalog.json_build_array(rn.nspname, rc.relname) as target,
    not p.proretset or p.prorows = 1 as is_single
  from pg_catalog.pg_proc p
  join pg_catalog.pg_namespace pn on pn.oid = p.pronamespace
  join pg_catalog.pg_class ac on ac.reltype = p.proargtypes[0] and ac.relkind in ('r', 'p', 'v', 'm', 'f')
  join pg_catalog.pg_namespace an on an.oid = ac.relnamespace
  join pg_catalog.pg_class rc on rc.reltype = p.prorettype and rc.relkind in ('r', 'p', 'v', 'm', 'f')
  join pg_catalog.pg_namespace rn on rn.oid = rc.relnamespace
  where p.pronargs = 1 and an.nspname = any ($1::text[])
) x
"""

# $2 are the names of settings that are taken over from functions.
ROUTINES: Final = b"""
with recursive plain(oid, base) as (
  select oid, oid from pg_catalog.pg_type where typtype <> 'd'
  union all
  select d.oid, p.base from pg_catalog.pg_type d join plain p on d.typbasetype = p.oid where d.typtype = 'd'
), candidate as (
  select p.*, n.nspname from pg_catalog.pg_proc p
  join pg_catalog.pg_namespace n on n.oid = p.pronamespace
  where n.nspname = any ($1::text[]) and p.prokind = 'f'
), input as (
  select c.oid, row_number() over (partition by c.oid order by o.at) as at, o.type,
    coalesce(o.mode, 'i') as mode, coalesce(o.name, '') as name
  from candidate c, unnest(coalesce(c.proallargtypes, c.proargtypes::oid[]), c.proargmodes, c.proargnames)
    with ordinality o(type, mode, name, at)
  where o.type is not null and coalesce(o.mode, 'i') in ('i', 'b', 'v')
), gathered as (
  select i.oid, pg_catalog.json_agg(pg_catalog.json_build_array(
      i.name,
      pg_catalog.format_type(i.type, null),
      case i.type when 'bit'::regtype then 'bit varying' when 'bit[]'::regtype then 'bit varying[]'
        when 'bpchar'::regtype then 'character varying' when 'bpchar[]'::regtype then 'character varying[]'
        else pg_catalog.format_type(i.type, null) end,
      i.at <= c.pronargs - c.pronargdefaults,
      i.mode = 'v') order by i.at) as parameters,
    count(*) filter (where i.name = '') as unnamed,
    bool_and(i.name <> '' or i.type in ('bytea'::regtype, 'json'::regtype, 'jsonb'::regtype, 'text'::regtype,
      'xml'::regtype)) as is_callable
  from input i join candidate c on c.oid = i.oid
  group by i.oid
)
select coalesce(pg_catalog.json_agg(x), '[]') from (
  select c.oid::bigint as oid, c.nspname as schema, c.proname as name,
    pg_catalog.obj_description(c.oid, 'pg_proc') as comment,
    coalesce(g.parameters, '[]') as parameters,
    pg_catalog.json_build_array(rn.nspname, coalesce(rc.relname, rt.typname)) as returns,
    c.proretset as is_set,
    rt.typtype = 'c' or coalesce(c.proargmodes::text[] && '{t,b,o}', false) as is_composite,
    c.prorettype <> p.base as is_domain,
    c.provolatile as volatility,
    coalesce((select pg_catalog.json_agg(s) from unnest(c.proconfig) s
              where split_part(s, '=', 1) = any ($2::text[])
                 or split_part(s, '=', 1) = 'default_transaction_isolation'), '[]') as settings
  from candidate c
  left join gathered g on g.oid = c.oid
  join plain p on p.oid = c.prorettype
  join pg_catalog.pg_type rt on rt.oid = p.base
  join pg_catalog.pg_namespace rn on rn.oid = rt.typnamespace
  left join pg_catalog.pg_class rc on rc.oid = rt.typrelid
  where p.base not in ('trigger'::regtype, 'event_trigger'::regtype)
    and coalesce(g.unnamed, 0) <= 1 and coalesce(g.is_callable, true)
) x
"""

REPRESENTATIONS: Final = b"""
select coalesce(pg_catalog.json_agg(x), '[]') from (
  select pg_catalog.format_type(c.castsource, null) as source,
    pg_catalog.format_type(c.casttarget, null) as target,
    pg_catalog.format('%I.%I', n.nspname, f.proname) as function
  from pg_catalog.pg_cast c
  join pg_catalog.pg_type s on s.oid = c.castsource
  join pg_catalog.pg_type t on t.oid = c.casttarget
  join pg_catalog.pg_proc f on f.oid = c.castfunc
  join pg_catalog.pg_namespace n on n.oid = f.pronamespace
  where c.castcontext = 'i' and c.castmethod = 'f' and pg_catalog.has_function_privilege(f.oid, 'execute')
    and (s.typtype = 'd' and c.casttarget in ('json'::regtype, 'text'::regtype)
      or t.typtype = 'd' and c.castsource in ('json'::regtype, 'text'::regtype))
) x
"""

HANDLERS: Final = b"""
with media as (
  select t.oid, n.nspname, t.typname
  from pg_catalog.pg_type t join pg_catalog.pg_namespace n on n.oid = t.typnamespace
  where t.typtype = 'd' and (t.typname ~ '^[A-Za-z0-9.-]+/[A-Za-z0-9.+-]+$' or t.typname = '*/*')
)
select coalesce(pg_catalog.json_agg(x), '[]') from (
  select pg_catalog.json_build_array(n.nspname, p.proname) as function,
    case when p.proargtypes[0] <> 'anyelement'::regtype
      then pg_catalog.json_build_array(an.nspname, ac.relname) end as target,
    m.typname as media_type
  from media m
  join pg_catalog.pg_proc p on p.prorettype = m.oid and p.prokind = 'a' and p.pronargs = 1
  join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname = any ($1::text[])
  left join pg_catalog.pg_class ac
    on ac.reltype = p.proargtypes[0] and ac.relkind in ('r', 'p', 'v', 'm', 'f')
  left join pg_catalog.pg_namespace an on an.oid = ac.relnamespace
  where p.proargtypes[0] = 'anyelement'::regtype or ac.oid is not null
  union all
  select pg_catalog.json_build_array(m.nspname, m.typname),
    pg_catalog.json_build_array(n.nspname, p.proname), m.typname
  from media m
  join pg_catalog.pg_proc p on p.prorettype = m.oid and p.prokind = 'f' and not p.proretset
  join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname = any ($1::text[])
) x
"""

TIMEZONES: Final = b"select coalesce(pg_catalog.json_agg(name), '[]') from pg_catalog.pg_timezone_names"

ROLES: Final = b"""
select coalesce(pg_catalog.json_agg(x), '[]') from (
  select r.rolname as role, pg_catalog.json_agg(pg_catalog.json_build_array(
      split_part(s, '=', 1), lower(substr(s, strpos(s, '=') + 1)))) as settings
  from pg_catalog.pg_roles r, unnest(r.rolconfig) s
  join pg_catalog.pg_settings p on p.name = split_part(s, '=', 1)
  where pg_catalog.pg_has_role(r.oid, 'member') and (p.context = 'user' or %s)
  group by r.rolname
) x
"""
#: what may be set besides, from Postgres 15 on and before
MAY_SET: Final = b"pg_catalog.has_parameter_privilege(p.name, 'set')"
MAY_NOT_SET: Final = b"false"

# Whether request.headers or request.cookies may be read: whoever names them, or asks for a setting whose name
# is not written out. Expressions are trees in the catalogue; 2077 and 3294 are the current_setting functions.
READS_HEADERS: Final = rb"""
with text(text) as (
  select p.prosrc from pg_catalog.pg_proc p
  join pg_catalog.pg_language l on l.oid = p.prolang and l.lanname not in ('internal', 'c')
  where p.pronamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
  union all
  select pg_catalog.pg_get_functiondef(p.oid) from pg_catalog.pg_proc p
  where p.prosqlbody::text ~ ':funcid (2077|3294) '
  union all
  select pg_catalog.pg_get_viewdef(w.ev_class) from pg_catalog.pg_rewrite w
  where w.ev_type = '1' and w.ev_class >= 16384 and w.ev_action::text ~ ':funcid (2077|3294) '
  union all
  select pg_catalog.pg_get_expr(q.polqual, q.polrelid)
    || coalesce(pg_catalog.pg_get_expr(q.polwithcheck, q.polrelid), '')
  from pg_catalog.pg_policy q
  where q.polqual::text || coalesce(q.polwithcheck::text, '') ~ ':funcid (2077|3294) '
  union all
  select pg_catalog.pg_get_expr(q.polwithcheck, q.polrelid) from pg_catalog.pg_policy q
  where q.polqual is null and q.polwithcheck::text ~ ':funcid (2077|3294) '
  union all
  select pg_catalog.pg_get_expr(d.adbin, d.adrelid) from pg_catalog.pg_attrdef d
  where d.adbin::text ~ ':funcid (2077|3294) '
  union all
  select pg_catalog.pg_get_constraintdef(k.oid) from pg_catalog.pg_constraint k
  where k.conbin::text ~ ':funcid (2077|3294) '
  union all
  select pg_catalog.pg_get_triggerdef(g.oid) from pg_catalog.pg_trigger g
  where g.tgqual::text ~ ':funcid (2077|3294) '
)
select exists (
  select from text where text ~ 'request\.(headers|cookies)'
    or text ~ 'current_setting\s*\(\s*(?!''[a-zA-Z0-9_.]+''(::text)?\s*[,)])'
)
"""
