-- Membership in the services' roles lets `postgres` manage policies and triggers on their tables. The guard
-- refuses the rest, as the platform does.
-- These two run as whoever gives the command, who may have no right in this schema: they call nothing of ours.
-- Both names are asked, since a service's session may run a function of the tenant's, and before 16 the tenant
-- may become a service's role.

create function toft.guard_ddl() returns event_trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  services constant name[] := '{supabase_admin,supabase_auth_admin,supabase_storage_admin}';
  guarded constant name[] := '{auth,storage,realtime,vault}';
  owners constant name[] := '{supabase_auth_admin,supabase_storage_admin,supabase_realtime_admin}';
  touched record;
  owned text;
begin
  if session_user = any (services) and current_user = any (services) then
    return;
  end if;
  for touched in
    select * from pg_event_trigger_ddl_commands() c
    where not c.in_extension
      and c.command_tag not in ('CREATE POLICY', 'ALTER POLICY', 'CREATE TRIGGER', 'COMMENT', 'GRANT', 'REVOKE')
  loop
    -- What a service owns, wherever it is by now.
    select coalesce('table ' || relation.relname, touched.object_type || ' ' || touched.object_identity) into owned
      from (
        select c.relowner as owner, coalesce(i.indrelid, c.oid) as relation
          from pg_class c left join pg_index i on i.indexrelid = c.oid
          where touched.classid = 'pg_class'::regclass and c.oid = touched.objid
        union all
        select proowner, null from pg_proc where touched.classid = 'pg_proc'::regclass and oid = touched.objid
        union all
        select typowner, null from pg_type where touched.classid = 'pg_type'::regclass and oid = touched.objid
        union all
        select relowner, c.oid from pg_rewrite r join pg_class c on c.oid = r.ev_class
          where touched.classid = 'pg_rewrite'::regclass and r.oid = touched.objid
        union all
        select relowner, c.oid from pg_trigger t join pg_class c on c.oid = t.tgrelid
          where touched.classid = 'pg_trigger'::regclass and t.oid = touched.objid
        union all
        select relowner, c.oid from pg_statistic_ext s join pg_class c on c.oid = s.stxrelid
          where touched.classid = 'pg_statistic_ext'::regclass and s.oid = touched.objid
      ) reached
      join pg_roles on pg_roles.oid = reached.owner
      left join pg_class relation on relation.oid = reached.relation
      where pg_roles.rolname = any (owners);
    if owned is not null or touched.schema_name = any (guarded) then
      raise exception using errcode = '42501',
        message = case when owned is null then format('permission denied for schema %s', touched.schema_name)
                       else format('must be owner of %s', owned) end,
        detail = format('%s is refused here, as the hosted platform refuses it.', touched.command_tag),
        hint = 'On tables of auth, storage and realtime you may create triggers and policies, and grant.';
    end if;
  end loop;
end $$;

create function toft.guard_drop() returns event_trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  services constant name[] := '{supabase_admin,supabase_auth_admin,supabase_storage_admin}';
  guarded constant name[] := '{auth,storage,realtime,vault}';
  dropped record;
begin
  if session_user = any (services) and current_user = any (services) then
    return;
  end if;
  for dropped in
    select o.object_type, coalesce(o.object_name, o.object_identity) as name
    from pg_event_trigger_dropped_objects() o
    where o.original
      and tg_tag not like 'ALTER %'  -- a column or a constraint: that command is refused as a whole
      and case o.object_type
            when 'policy' then false
            when 'trigger' then false
            when 'rule' then o.address_names[1] = any (guarded)
            else o.schema_name = any (guarded) end
  loop
    raise exception using errcode = '42501',
      message = format('must be owner of %s %s', dropped.object_type, dropped.name),
      detail = format('%s is refused here, as the hosted platform refuses it.', tg_tag),
      hint = 'On tables of auth, storage and realtime you may drop triggers and policies.';
  end loop;
end $$;
