with
  given as (select $1::text[] as exposed),
  own as (
    select n.oid, n.nspname, n.nspname = any (given.exposed) as is_exposed from pg_namespace as n, given
    where n.nspname !~ '^(pg_|supabase_)' and n.nspname <> all (array['information_schema', 'auth', 'storage',
      'realtime', '_realtime', 'vault', 'extensions', 'graphql', 'graphql_public', 'net', 'cron', 'pgbouncer',
      'pgmq', 'pgsodium', 'toft', 'toft_permit'])),
  rel as (
    select c.*, own.nspname, own.is_exposed, own.nspname || '.' || c.relname as name,
      has_table_privilege('anon', c.oid, 'select') or has_table_privilege('authenticated', c.oid, 'select')
        as is_readable
    from pg_class as c join own on own.oid = c.relnamespace
    where not exists (select from pg_depend as d where d.classid = 'pg_class'::regclass and d.objid = c.oid
      and d.deptype = 'e')),
  tab as (select * from rel where relkind in ('r', 'p')),
  pol as (
    select p.*, rel.name, rel.is_exposed, coalesce(pg_get_expr(p.polqual, p.polrelid), '') as reads,
      coalesce(pg_get_expr(p.polwithcheck, p.polrelid), '') as checks,
      case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete'
        else 'all' end as command,
      case when p.polroles = '{0}' then array['anon', 'authenticated']
        else (select array_agg(r::regrole::text) from unnest(p.polroles) as r) end as roles
    from pg_policy as p join rel on rel.oid = p.polrelid),
  fun as (
    select p.*, own.nspname, own.is_exposed,
      own.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' as name
    from pg_proc as p join own on own.oid = p.pronamespace
    where p.prokind in ('f', 'p') and p.prorettype <> 'event_trigger'::regtype and not exists (
      select from pg_depend as d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')),
  found (rule, object, detail) as (
    select 'unindexed_foreign_keys', tab.name, 'foreign key ' || k.conname || ' has no index on its columns'
    from pg_constraint as k join tab on tab.oid = k.conrelid
    where k.contype = 'f' and not exists (
      select from pg_index as x where x.indrelid = k.conrelid and x.indpred is null
        and (string_to_array(x.indkey::text, ' ')::int2[])[1:cardinality(k.conkey)] @> k.conkey)
    union all
    select 'auth_users_exposed', rel.name, 'shows rows of auth.users to the API''s roles'
    from rel join pg_rewrite as w on w.ev_class = rel.oid
    where rel.relkind in ('v', 'm') and rel.is_exposed and rel.is_readable
      and not coalesce('security_invoker=true' = any (rel.reloptions) or 'security_invoker=on' = any (rel.reloptions), false)
      and exists (select from pg_depend as d where d.classid = 'pg_rewrite'::regclass and d.objid = w.oid
        and d.refclassid = 'pg_class'::regclass and d.refobjid = to_regclass('auth.users'))
    union all
    select 'auth_rls_initplan', pol.name, 'policy "' || pol.polname || '" calls auth functions or current_setting once per row'
    from pol where regexp_replace(pol.reads || ' ' || pol.checks,
        '\(\s*select\s+(auth\.(uid|jwt|role|email)\(\)|current_setting\([^)]*\))', '', 'gi')
      ~* '(auth\.(uid|jwt|role|email)\(\)|current_setting\()'
    union all
    select 'no_primary_key', tab.name, 'has no primary key' from tab
    where not tab.relispartition and not exists (
      select from pg_index as x where x.indrelid = tab.oid and x.indisprimary)
    union all
    select 'multiple_permissive_policies', pol.name,
      count(*) || ' permissive policies for ' || c.command || ' by ' || r.role
    from pol cross join lateral unnest(pol.roles) as r (role)
    cross join lateral unnest(case pol.command when 'all' then array['select', 'insert', 'update', 'delete']
      else array[pol.command] end) as c (command)
    where pol.polpermissive group by pol.name, c.command, r.role having count(*) > 1
    union all
    select 'policy_exists_rls_disabled', tab.name, 'has policies, and row level security is off'
    from tab where not tab.relrowsecurity and exists (select from pg_policy as p where p.polrelid = tab.oid)
    union all
    select 'rls_enabled_no_policy', tab.name, 'row level security is on, and no policy lets anybody in'
    from tab where tab.relrowsecurity and not exists (select from pg_policy as p where p.polrelid = tab.oid)
    union all
    select 'duplicate_index', tab.name, 'indexes ' || string_agg(i.relname, ', ' order by i.relname) || ' are equal'
    from pg_index as x join tab on tab.oid = x.indrelid join pg_class as i on i.oid = x.indexrelid
    group by tab.name, x.indkey, x.indclass, x.indoption, x.indcollation, i.relam,
      pg_get_expr(x.indexprs, x.indrelid), pg_get_expr(x.indpred, x.indrelid) having count(*) > 1
    union all
    select 'security_definer_view', rel.name, 'runs with the rights of its owner, so policies of its tables do not hold'
    from rel where rel.relkind = 'v' and rel.is_exposed and rel.is_readable and not coalesce(
      'security_invoker=true' = any (rel.reloptions) or 'security_invoker=on' = any (rel.reloptions)
      or 'security_invoker=1' = any (rel.reloptions), false)
    union all
    select 'function_search_path_mutable', fun.name, 'has no search_path of its own'
    from fun where not exists (select from unnest(fun.proconfig) as s where s like 'search_path=%')
      and fun.prosqlbody is null
    union all
    select 'rls_disabled_in_public', tab.name, 'is readable through the API, and row level security is off'
    from tab where tab.is_exposed and tab.is_readable and not tab.relrowsecurity
    union all
    select 'extension_in_public', e.extname, 'is installed in public'
    from pg_extension as e where e.extnamespace = 'public'::regnamespace and e.extrelocatable
    union all
    select 'rls_references_user_metadata', pol.name, 'policy "' || pol.polname || '" trusts user_metadata, which users write'
    from pol where pol.reads || pol.checks ~* 'user_?meta_?data'
    union all
    select 'materialized_view_in_api', rel.name, 'is readable through the API, and has no row level security'
    from rel where rel.relkind = 'm' and rel.is_exposed and rel.is_readable
    union all
    select 'foreign_table_in_api', rel.name, 'is readable through the API, and has no row level security'
    from rel where rel.relkind = 'f' and rel.is_exposed and rel.is_readable
    union all
    select 'unsupported_reg_types', tab.name, 'column ' || a.attname || ' has type ' || format_type(a.atttypid, null)
    from tab join pg_attribute as a on a.attrelid = tab.oid and a.attnum > 0 and not a.attisdropped
    where a.atttypid in ('regcollation'::regtype, 'regconfig'::regtype, 'regdictionary'::regtype, 'regnamespace'::regtype,
      'regoper'::regtype, 'regoperator'::regtype, 'regproc'::regtype, 'regprocedure'::regtype)
    union all
    select 'fkey_to_auth_unique', tab.name, 'foreign key ' || k.conname || ' points to something else than a primary key of auth'
    from pg_constraint as k join tab on tab.oid = k.conrelid join pg_class as t on t.oid = k.confrelid
    where k.contype = 'f' and t.relnamespace = to_regnamespace('auth')
      and not exists (select from pg_index as x where x.indexrelid = k.conindid and x.indisprimary)
    union all
    select 'extension_versions_outdated', e.extname, 'is ' || e.extversion || '; ' || a.default_version || ' is there'
    from pg_extension as e join pg_available_extensions as a on a.name = e.extname
    where a.default_version <> e.extversion
    union all
    select 'sensitive_columns_exposed', tab.name, 'column ' || a.attname || ' is readable by everyone, without row level security'
    from tab join pg_attribute as a on a.attrelid = tab.oid and a.attnum > 0 and not a.attisdropped
    where tab.is_exposed and tab.is_readable and not tab.relrowsecurity and a.attname ~* ('^(.*_)?(password|passwd|pwd|'
      || 'secret|api_?key|access_token|refresh_token|ssn|social_security(_number)?|credit_card(_number)?|card_number|cvv|cvc|'
      || 'iban|bank_account(_number)?|tax_id|passport(_number)?|drivers?_licen[cs]e)$')
    union all
    select 'rls_policy_always_true', pol.name, 'policy "' || pol.polname || '" lets everybody ' || pol.command
    from pol where pol.polpermissive and pol.command <> 'select'
      and pol.roles && array['anon', 'authenticated', 'public']
      and (pol.reads in ('true', '(true)') or pol.checks in ('true', '(true)'))
    union all
    select 'public_bucket_allows_listing', b.id, 'the bucket is public, and a policy lets everybody list it'
    from storage.buckets as b where b.public and exists (
      select from pg_policy as p where p.polrelid = 'storage.objects'::regclass and p.polcmd in ('r', '*') and p.polpermissive
        and (p.polroles && array[0::oid, 'anon'::regrole::oid])
        and (pg_get_expr(p.polqual, p.polrelid) in ('true', '(true)')
          or pg_get_expr(p.polqual, p.polrelid) = '(bucket_id = ' || quote_literal(b.id) || '::text)'))
    union all
    select r.rolname || '_security_definer_function_executable', fun.name,
      r.rolname || ' may execute it, with the rights of its owner'
    from fun cross join (select * from pg_roles where rolname in ('anon', 'authenticated')) as r
    where fun.prosecdef and fun.is_exposed and fun.prorettype <> 'trigger'::regtype
      and has_function_privilege(r.oid, fun.oid, 'execute')
    union all
    select 'anon_can_truncate', tab.name, 'anon may TRUNCATE it, which row level security does not cover'
    from tab where tab.is_exposed and has_table_privilege('anon', tab.oid, 'truncate')
    union all
    select 'grants_missing', tab.name, 'has row level security and policies, but no API role may use the table or its schema'
    from tab where exists (select from pg_policy as p where p.polrelid = tab.oid)
      and not exists (select from (values ('anon'), ('authenticated')) as r (role)
        where has_schema_privilege(r.role, tab.relnamespace, 'usage')
          and has_table_privilege(r.role, tab.oid, 'select, insert, update, delete')))
select coalesce(json_agg(json_build_object('rule', rule, 'object', object, 'detail', detail)
  order by rule, object, detail), '[]') from found
