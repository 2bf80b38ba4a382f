-- A trusted extension's script makes objects of the superuser's. What `postgres` gets on the platform is given
-- here for real extensions, and what nobody should have is taken; our stand-ins grant in their own scripts.

create function toft.grant_extension() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  made name;
  unsafe regprocedure;
begin
  for made in
    select e.extname from pg_event_trigger_ddl_commands() c join pg_extension e on e.oid = c.objid
    where c.classid = 'pg_extension'::regclass
      and coalesce(obj_description(e.oid, 'pg_extension'), '') not like 'Stand-in by Toft%'
  loop
    case made
      when 'dblink' then
        -- Default privileges have undone what its script took away.
        for unsafe in
          select p.oid from pg_depend d join pg_extension e on e.oid = d.refobjid join pg_proc p on p.oid = d.objid
          where d.refclassid = 'pg_extension'::regclass and d.classid = 'pg_proc'::regclass
            and e.extname = 'dblink' and p.proname = 'dblink_connect_u'
        loop
          execute format('revoke all on function %s from postgres, anon, authenticated, service_role', unsafe);
        end loop;
      when 'postgres_fdw' then
        grant usage on foreign data wrapper postgres_fdw to postgres with grant option;
      when 'pg_cron' then
        grant usage on schema cron to postgres with grant option;
        grant all on all functions in schema cron to postgres with grant option;
        grant select on cron.job to postgres with grant option;
        grant all on cron.job_run_details to postgres with grant option;
      when 'pg_net' then
        grant usage on schema net to postgres, anon, authenticated, service_role, supabase_functions_admin;
        grant all on all tables in schema net to postgres, service_role, supabase_functions_admin;
      when 'pgmq' then
        grant usage, create on schema pgmq to postgres with grant option;
        grant all on all tables in schema pgmq to postgres with grant option;
        grant all on all sequences in schema pgmq to postgres with grant option;
      else
        null;
    end case;
  end loop;
end $$;
