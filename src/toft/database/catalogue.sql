with
  -- what the platform, an extension or Toft itself owns is left out, but for what a project hangs on it
  mine as (
    select n.oid, n.nspname from pg_namespace as n
    where n.nspname !~ '^(pg_|supabase_)' and n.nspname <> all (array[
      'information_schema', 'auth', 'storage', 'realtime', '_realtime', 'vault', 'extensions', 'graphql',
      'graphql_public', 'net', 'cron', 'pgbouncer', 'pgmq', 'pgsodium', 'pgsodium_masks', 'tiger', 'topology',
      'toft', 'toft_permit'])
      and not exists (select from pg_depend as d where d.objid = n.oid and d.classid = 'pg_namespace'::regclass
        and d.deptype = 'e')),
  lent as (select oid, nspname from pg_namespace where nspname in ('auth', 'storage', 'realtime')),
  relation as (
    select c.*, m.nspname, m.nspname || '.' || c.relname as identity from pg_class as c
    join mine as m on m.oid = c.relnamespace
    where not exists (select from pg_depend as d where d.classid = 'pg_class'::regclass and d.objid = c.oid
      and d.deptype = 'e')),
  hung as (
    select c.oid, n.nspname || '.' || c.relname as identity from pg_class as c
    join (select * from mine union select * from lent) as n on n.oid = c.relnamespace),
  routine as (
    select p.*, m.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' as identity
    from pg_proc as p join mine as m on m.oid = p.pronamespace
    where not exists (select from pg_depend as d where d.classid = 'pg_proc'::regclass and d.objid = p.oid
      and d.deptype = 'e')),
  granted (identity, kind, acl, owner, what) as (
    select identity, case relkind when 'S' then 'sequence' else 'table' end, relacl, relowner,
      case relkind when 'S' then 's' else 'r' end::"char"
    from relation where relkind in ('r', 'p', 'v', 'm', 'f', 'S')
    union all select identity, 'function', proacl, proowner, 'f' from routine
    union all select m.nspname, 'schema', n.nspacl, n.nspowner, 'n' from pg_namespace as n join mine as m using (oid)),
  found (kind, identity, parent, facts) as (
    select 'schema', nspname::text, null::text, jsonb_build_object() from mine
    union all
    select 'extension', e.extname::text, null, jsonb_build_object('schema', n.nspname, 'version', e.extversion)
    from pg_extension as e join pg_namespace as n on n.oid = e.extnamespace
    union all
    select case relkind when 'v' then 'view' when 'm' then 'matview' when 'S' then 'sequence' else 'table' end,
      identity, nspname, case
        when relkind in ('v', 'm') then jsonb_build_object('definition', pg_get_viewdef(oid, true),
          'options', to_jsonb(reloptions))
        when relkind = 'S' then (select jsonb_build_object('type', format_type(s.seqtypid, null),
          'start', s.seqstart, 'increment', s.seqincrement, 'min', s.seqmin, 'max', s.seqmax, 'cycle', s.seqcycle)
          from pg_sequence as s where s.seqrelid = relation.oid)
        else jsonb_build_object('unlogged', relpersistence = 'u', 'foreign', relkind = 'f',
          'partition_of', (select i.inhparent::regclass::text from pg_inherits as i where i.inhrelid = relation.oid),
          'partition_bound', pg_get_expr(relpartbound, oid),
          'partition_key', case when relkind = 'p' then pg_get_partkeydef(oid) end) end
    from relation where relkind in ('r', 'p', 'v', 'm', 'f') or (relkind = 'S' and not exists (
      select from pg_depend as d where d.classid = 'pg_class'::regclass and d.objid = relation.oid
        and d.deptype = 'i'))
    union all
    select 'column', r.identity || '.' || a.attname, r.identity, jsonb_build_object(
      'type', format_type(a.atttypid, a.atttypmod), 'not_null', a.attnotnull,
      'default', case when a.attgenerated = '' then pg_get_expr(d.adbin, d.adrelid) end,
      'generated', case when a.attgenerated <> '' then pg_get_expr(d.adbin, d.adrelid) end,
      'identity', nullif(a.attidentity, '')::text, 'position', a.attnum)
    from relation as r join pg_attribute as a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef as d on d.adrelid = r.oid and d.adnum = a.attnum
    where r.relkind in ('r', 'p', 'f')
    union all
    select 'rls', r.identity, r.identity, jsonb_build_object('forced', r.relforcerowsecurity)
    from relation as r where r.relrowsecurity
    union all
    select 'index', r.identity || '.' || i.relname, r.identity, jsonb_build_object(
      'definition', pg_get_indexdef(i.oid), 'valid', x.indisvalid)
    from pg_index as x join relation as r on r.oid = x.indrelid join pg_class as i on i.oid = x.indexrelid
    where not exists (select from pg_constraint as k where k.conindid = i.oid and k.contype in ('p', 'u', 'x'))
      and not i.relispartition
    union all
    select 'constraint', r.identity || '.' || k.conname, r.identity, jsonb_build_object(
      'definition', pg_get_constraintdef(k.oid, true), 'type', k.contype::text, 'validated', k.convalidated)
    from pg_constraint as k join relation as r on r.oid = k.conrelid
    where k.conparentid = 0 and k.contype in ('p', 'u', 'x', 'f', 'c') and k.coninhcount = 0
    union all
    select 'policy', h.identity || '.' || p.polname, h.identity, jsonb_build_object(
      'permissive', p.polpermissive,
      'command', case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update'
        when 'd' then 'delete' else 'all' end,
      'roles', (select jsonb_agg(case when role = 0 then 'public' else role::regrole::text end order by role)
        from unnest(p.polroles) as role),
      'using', pg_get_expr(p.polqual, p.polrelid), 'check', pg_get_expr(p.polwithcheck, p.polrelid))
    from pg_policy as p join hung as h on h.oid = p.polrelid
    union all
    select 'trigger', h.identity || '.' || t.tgname, h.identity, jsonb_build_object(
      'definition', pg_get_triggerdef(t.oid), 'enabled', t.tgenabled::text)
    from pg_trigger as t join hung as h on h.oid = t.tgrelid where not t.tgisinternal and t.tgparentid = 0
    union all
    select 'function', identity, null, case when prokind = 'a' then jsonb_build_object('aggregate', true) else
      jsonb_build_object('definition', pg_get_functiondef(oid), 'security_definer', prosecdef) end
    from routine
    union all
    select 'type', m.nspname || '.' || t.typname, m.nspname, jsonb_build_object(
      'kind', case t.typtype when 'e' then 'enum' when 'd' then 'domain' when 'r' then 'range' else 'composite' end,
      'base', case when t.typtype = 'd' then format_type(t.typbasetype, t.typtypmod) end,
      'checks', (select jsonb_agg(pg_get_constraintdef(k.oid) order by k.conname) from pg_constraint as k
        where k.contypid = t.oid),
      'fields', (select jsonb_agg(jsonb_build_array(a.attname, format_type(a.atttypid, a.atttypmod)) order by a.attnum)
        from pg_attribute as a where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped),
      'subtype', (select format_type(g.rngsubtype, null) from pg_range as g where g.rngtypid = t.oid))
    from pg_type as t join mine as m on m.oid = t.typnamespace
    where (t.typtype in ('e', 'd', 'r') or (t.typtype = 'c' and exists (
        select from pg_class as c where c.oid = t.typrelid and c.relkind = 'c')))
      and not exists (select from pg_depend as d where d.classid = 'pg_type'::regclass and d.objid = t.oid
        and d.deptype = 'e')
    union all
    select 'enum_value', m.nspname || '.' || t.typname || '.' || v.enumlabel, m.nspname || '.' || t.typname,
      jsonb_build_object('label', v.enumlabel,
        'after', (select w.enumlabel from pg_enum as w where w.enumtypid = v.enumtypid
          and w.enumsortorder < v.enumsortorder order by w.enumsortorder desc limit 1))
    from pg_enum as v join pg_type as t on t.oid = v.enumtypid join mine as m on m.oid = t.typnamespace
    union all
    select 'grant', g.identity || ' to ' || case when a.grantee = 0 then 'public' else a.grantee::regrole::text end,
      g.identity, jsonb_build_object('on', g.kind, 'privileges', jsonb_agg(lower(a.privilege_type) order by a.privilege_type))
    from granted as g cross join lateral aclexplode(coalesce(g.acl, acldefault(g.what, g.owner))) as a
    where a.grantee <> g.owner group by g.identity, g.kind, a.grantee
    union all
    select 'default_privilege', a.defaclrole::regrole::text || coalesce(' in ' || n.nspname, '') || ' on '
      || case a.defaclobjtype when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'functions'
        when 'T' then 'types' else 'schemas' end, n.nspname::text,
      jsonb_build_object('privileges', (select jsonb_agg(acl::text order by acl::text) from unnest(a.defaclacl) as acl))
    from pg_default_acl as a left join pg_namespace as n on n.oid = a.defaclnamespace
    where a.defaclnamespace = 0 or a.defaclnamespace in (select oid from mine)
    union all
    select 'publication', p.pubname::text, null, jsonb_build_object('all_tables', p.puballtables,
      'tables', (select jsonb_agg(t.schemaname || '.' || t.tablename order by t.schemaname, t.tablename) from pg_publication_tables as t
        where t.pubname = p.pubname))
    from pg_publication as p
    union all
    select 'event_trigger', e.evtname::text, null, jsonb_build_object('event', e.evtevent,
      'function', e.evtfoid::regproc::text)
    from pg_event_trigger as e where e.evtowner <> 'supabase_admin'::regrole
    union all
    select 'comment', r.identity || coalesce('.' || a.attname, ''), r.identity,
      jsonb_build_object('text', c.description, 'on', case
        when a.attname is not null then 'column' when r.relkind = 'v' then 'view'
        when r.relkind = 'm' then 'materialized view' when r.relkind = 'S' then 'sequence' else 'table' end)
    from pg_description as c join relation as r on c.classoid = 'pg_class'::regclass and c.objoid = r.oid
    left join pg_attribute as a on a.attrelid = r.oid and a.attnum = c.objsubid and c.objsubid > 0
    where r.relkind in ('r', 'p', 'v', 'm', 'S', 'f')
    union all
    select 'setting', coalesce(d.datname, '*') || '/' || coalesce(r.rolname, '*') || '/' || split_part(s, '=', 1),
      null, jsonb_build_object('value', substr(s, strpos(s, '=') + 1))
    from pg_db_role_setting as x cross join lateral unnest(x.setconfig) as s
    left join pg_database as d on d.oid = x.setdatabase left join pg_roles as r on r.oid = x.setrole)
select coalesce(json_agg(json_build_object('kind', kind, 'identity', identity, 'parent', parent, 'facts', facts)
  order by kind, identity), '[]') from found
