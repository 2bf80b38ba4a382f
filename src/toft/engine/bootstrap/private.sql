-- Toft's own schema: how the Data API knows that its schema cache is still true.
-- `postgres` may read everything in here (pg_read_all_data) and change nothing.

create schema toft authorization supabase_admin;
grant usage on schema toft to authenticator;

-- One row per DDL command, visible exactly when the command's transaction is. Insert-only, so that DDL
-- transactions never wait for each other here; the version is the sum, so that folding rows keeps it.
create table toft.schema_change (weight bigint not null);
insert into toft.schema_change values (1);

create function toft.note_ddl() returns event_trigger
language plpgsql security definer set search_path = '' as $$
begin
  -- Temporary objects are nobody else's business; CREATE EXTENSION speaks for its script; DROP tells its
  -- news in sql_drop.
  if exists (select from pg_event_trigger_ddl_commands() c
             where not c.in_extension and c.schema_name is distinct from 'pg_temp')
     or tg_tag = 'DROP OWNED' then
    insert into toft.schema_change values (1);
  end if;
end $$;

create function toft.note_drop() returns event_trigger
language plpgsql security definer set search_path = '' as $$
begin
  if exists (select from pg_event_trigger_dropped_objects() o where not o.is_temporary) then
    insert into toft.schema_change values (1);
  end if;
end $$;

-- Event triggers do not see shared objects, so those that a schema cache keeps are hashed: names of roles,
-- memberships, settings of roles and databases. Never passwords: clones of one template must agree.
create function toft.schema_version() returns text
language plpgsql stable security definer parallel safe set search_path = '' as $$
begin
  return (
    select sum(weight) || '.' || to_hex(bit_xor(hash))
    from (select weight, 0::bigint as hash from toft.schema_change
          union all
          select 0, hashnameextended(rolname, oid::bigint) from pg_authid
          union all
          select 0, hashint8extended(roleid::bigint << 32 | member::bigint, 1) from pg_auth_members
          union all
          select 0, hash_array_extended(setconfig, setdatabase::bigint << 32 | setrole::bigint)
          from pg_db_role_setting) facts);
end $$;

-- The first statement of every pipeline. Answers the snapshot it looked at; a caller that hands it back with
-- the next request on the same connection is let through at once when nothing was committed in between.
-- VOLATILE, so that it sees what is committed when it starts.
create function toft.require_schema_version(expected text, seen text default null) returns text
language plpgsql volatile security definer set search_path = '' as $$
declare
  visible text := pg_current_snapshot()::text;
  actual text;
begin
  if visible = seen then
    return seen;
  end if;
  actual := toft.schema_version();
  if actual is distinct from expected then
    raise exception using errcode = 'TF001', message = 'the schema has changed', detail = actual;
  end if;
  return visible;
end $$;

-- Keeps the table short and its sum as it is. Two at once, or one beside DDL, do no harm.
create function toft.fold_schema_changes() returns void
language sql volatile security definer set search_path = '' as $$
  with gone as (delete from toft.schema_change returning weight)
  insert into toft.schema_change select sum(weight) from gone having count(*) > 0
$$;

-- The guard --------------------------------------------------------------------------------------
-- Membership in the services' roles lets `postgres` manage policies and triggers on their tables. The guard
-- refuses the rest, as the platform does.
-- These two run as whoever gives the command, who may have no right in this schema: they call nothing of ours.
-- Both names are asked, since a service's session may run a function of the tenant's, and before 16 the tenant
-- may become a service's role.

create function toft.guard_ddl() returns event_trigger
language plpgsql set search_path = '' as $$
declare
  services constant name[] := '{supabase_admin,supabase_auth_admin,supabase_storage_admin}';
  guarded constant name[] := '{auth,storage,realtime,vault}';
  owners constant name[] := '{supabase_auth_admin,supabase_storage_admin,supabase_realtime_admin}';
  touched record;
begin
  if session_user = any (services) and current_user = any (services) then
    return;
  end if;
  for touched in
    select * from pg_event_trigger_ddl_commands() c
    where not c.in_extension
      and c.command_tag not in ('CREATE POLICY', 'ALTER POLICY', 'CREATE TRIGGER', 'COMMENT', 'GRANT', 'REVOKE')
  loop
    if touched.schema_name = any (guarded) or exists (
      select from (
        select relowner as owner from pg_class
          where touched.classid = 'pg_class'::regclass and oid = touched.objid
        union all
        select proowner from pg_proc where touched.classid = 'pg_proc'::regclass and oid = touched.objid
        union all
        select typowner from pg_type where touched.classid = 'pg_type'::regclass and oid = touched.objid
        union all
        select relowner from pg_rewrite r join pg_class c on c.oid = r.ev_class
          where touched.classid = 'pg_rewrite'::regclass and r.oid = touched.objid
        union all
        select relowner from pg_trigger t join pg_class c on c.oid = t.tgrelid
          where touched.classid = 'pg_trigger'::regclass and t.oid = touched.objid
        union all
        select relowner from pg_statistic_ext s join pg_class c on c.oid = s.stxrelid
          where touched.classid = 'pg_statistic_ext'::regclass and s.oid = touched.objid
      ) reached join pg_roles on pg_roles.oid = reached.owner
      where rolname = any (owners))
    then
      raise exception using errcode = '42501',
        message = format('must be owner of %s %s', touched.object_type, touched.object_identity),
        detail = format('%s is refused here, as the hosted platform refuses it.', touched.command_tag),
        hint = 'On tables of auth, storage and realtime you may create triggers and policies, and grant.';
    end if;
  end loop;
end $$;

create function toft.guard_drop() returns event_trigger
language plpgsql set search_path = '' as $$
declare
  services constant name[] := '{supabase_admin,supabase_auth_admin,supabase_storage_admin}';
  dropped record;
begin
  if session_user = any (services) and current_user = any (services) then
    return;
  end if;
  for dropped in
    select * from pg_event_trigger_dropped_objects() o
    where o.original and o.object_type not in ('policy', 'trigger')
      and o.schema_name in ('auth', 'storage', 'realtime', 'vault')
  loop
    raise exception using errcode = '42501',
      message = format('must be owner of %s %s', dropped.object_type, dropped.object_identity),
      detail = format('%s is refused here, as the hosted platform refuses it.', tg_tag),
      hint = 'On tables of auth, storage and realtime you may drop triggers and policies.';
  end loop;
end $$;

-- After CREATE EXTENSION --------------------------------------------------------------------------
-- A trusted extension's script makes objects of the superuser's; what `postgres` gets on the platform is
-- given here, for real extensions (our stand-ins grant in their own scripts).

create function toft.grant_extension() returns event_trigger
language plpgsql security definer set search_path = '' as $$
declare
  made name;
begin
  for made in
    select e.extname from pg_event_trigger_ddl_commands() c join pg_extension e on e.oid = c.objid
    where c.classid = 'pg_extension'::regclass
  loop
    if made = 'postgres_fdw' then
      grant usage on foreign data wrapper postgres_fdw to postgres with grant option;
    elsif made = 'pgmq' then
      grant usage, create on schema pgmq to postgres with grant option;
      grant all on all tables in schema pgmq to postgres with grant option;
      grant all on all sequences in schema pgmq to postgres with grant option;
    end if;
  end loop;
end $$;

-- NOTIFY pgrst ------------------------------------------------------------------------------------

create function toft.pgrst_ddl_watch() returns event_trigger
language plpgsql set search_path = '' as $$
begin
  if exists (select from pg_event_trigger_ddl_commands() c
             where coalesce(c.schema_name, '') not in ('pg_temp', 'auth', 'storage', 'realtime', '_realtime', 'toft')) then
    perform pg_notify('pgrst', 'reload schema');
  end if;
end $$;

create function toft.pgrst_drop_watch() returns event_trigger
language plpgsql set search_path = '' as $$
begin
  if exists (select from pg_event_trigger_dropped_objects() o
             where not o.is_temporary
               and coalesce(o.schema_name, '') not in ('auth', 'storage', 'realtime', '_realtime', 'toft')) then
    perform pg_notify('pgrst', 'reload schema');
  end if;
end $$;

-- Supabase's Data API answers this way while pg_graphql is off, and here it always is.
create function graphql_public.graphql(
  "operationName" text default null, query text default null, variables jsonb default null, extensions jsonb default null)
returns jsonb
language sql
return '{"errors": [{"message": "pg_graphql is not available in this backend."}]}'::jsonb;

-- Database webhooks. Their rows in dumps are triggers that call this function.
create function supabase_functions.http_request() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
  url constant text := tg_argv[0];
  method constant text := tg_argv[1];
  headers constant jsonb := coalesce(nullif(nullif(tg_argv[2], 'null'), ''), '{"Content-Type": "application/json"}');
  params constant jsonb := coalesce(nullif(nullif(tg_argv[3], 'null'), ''), '{}');
  timeout constant integer := coalesce(nullif(nullif(tg_argv[4], 'null'), ''), '1000');
begin
  if coalesce(url, 'null') = 'null' then
    raise exception using errcode = '22023', message = 'the url of a webhook must not be empty';
  end if;
  if to_regnamespace('net') is null then
    raise exception using errcode = '0A000', message = 'a webhook needs the extension pg_net',
      hint = 'create extension pg_net';
  end if;
  case method
    when 'GET' then
      perform net.http_get(url, params, headers, timeout);
    when 'POST' then
      perform net.http_post(url, jsonb_build_object(
        'type', tg_op, 'table', tg_table_name, 'schema', tg_table_schema,
        'record', case tg_op when 'DELETE' then null else to_jsonb(new) end,
        'old_record', case tg_op when 'INSERT' then null else to_jsonb(old) end), params, headers, timeout);
    else
      raise exception using errcode = '22023', message = format('a webhook can not use the method %L', method);
  end case;
  return coalesce(new, old);
end $$;
alter function supabase_functions.http_request() owner to supabase_functions_admin;
comment on function supabase_functions.http_request() is 'Stand-in by Toft over pg_net.';
