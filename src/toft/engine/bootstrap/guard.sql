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
  owner oid;
  refusal text;
begin
  if tg_tag in ('CREATE POLICY', 'ALTER POLICY', 'CREATE TRIGGER', 'COMMENT', 'GRANT', 'REVOKE')
     or (session_user = any (services) and current_user = any (services)) then
    return;
  end if;
  for touched in
    select * from pg_event_trigger_ddl_commands() c
    where not c.in_extension
      and (c.schema_name = any (guarded) or c.command_tag like 'ALTER %'
           or c.command_tag in ('CREATE RULE', 'CREATE STATISTICS'))
  loop
    -- A command may touch what a service owns from outside of its schema, or have moved it out.
    owner := null;
    if touched.classid = 'pg_class'::regclass then
      select c.relowner, 'must be owner of table ' || coalesce(t.relname, c.relname) into owner, refusal
        from pg_class c left join pg_index i on i.indexrelid = c.oid left join pg_class t on t.oid = i.indrelid
        where c.oid = touched.objid;
    elsif touched.classid = 'pg_proc'::regclass then
      select proowner, 'must be owner of function ' || proname into owner, refusal
        from pg_proc where oid = touched.objid;
    elsif touched.classid = 'pg_type'::regclass then
      select typowner, 'must be owner of type ' || typname into owner, refusal
        from pg_type where oid = touched.objid;
    elsif touched.classid = 'pg_rewrite'::regclass then
      select relowner, 'must be owner of table ' || relname into owner, refusal
        from pg_rewrite r join pg_class c on c.oid = r.ev_class where r.oid = touched.objid;
    elsif touched.classid = 'pg_trigger'::regclass then
      select relowner, 'must be owner of table ' || relname into owner, refusal
        from pg_trigger t join pg_class c on c.oid = t.tgrelid where t.oid = touched.objid;
    elsif touched.classid = 'pg_statistic_ext'::regclass then
      select relowner, 'must be owner of table ' || relname into owner, refusal
        from pg_statistic_ext s join pg_class c on c.oid = s.stxrelid where s.oid = touched.objid;
    end if;
    if owner is null or pg_get_userbyid(owner) <> all (owners) then
      continue when touched.schema_name is null or touched.schema_name <> all (guarded);
      refusal := 'permission denied for schema ' || touched.schema_name;
    end if;
    raise exception using errcode = '42501', message = refusal,
      detail = format('%s is refused here, as the hosted platform refuses it.', touched.command_tag),
      hint = 'On tables of auth, storage and realtime you may create triggers and policies, and grant.';
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
