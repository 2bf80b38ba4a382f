-- Toft's own schema: how the Data API knows that its schema cache is still true.
-- `postgres` may read everything in here (pg_read_all_data) and change nothing. Every function names its
-- search_path, pg_temp last: a session that runs tenants' code may have a temporary relation of any name.

create schema toft authorization supabase_admin;
grant usage on schema toft to authenticator;

-- One row per DDL command, visible exactly when the command's transaction is. Insert-only, so that DDL
-- transactions never wait for each other here; the version is the sum, so that folding rows keeps it.
-- Weights are drawn by chance, so that two clones of one template which went different ways never share a
-- version: the Data API keeps what it learned about a version for all backends of the template. Forty bits: the
-- sum of eight million commands fits.
create table toft.schema_change (weight bigint not null);
insert into toft.schema_change values (1);
-- or a publication of all tables would forbid folding
alter table toft.schema_change replica identity full;

-- Counts the command, and tells who listens (NOTIFY pgrst) unless only the services' own objects are concerned.
-- One look at the commands for both: each look costs as much as a small DDL command.
create function toft.note_ddl() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  counts boolean;
  is_news boolean;
begin
  -- Temporary objects are nobody else's business; CREATE EXTENSION speaks for its script; DROP tells its
  -- news in sql_drop.
  select count(*) > 0, coalesce(bool_or(schema_name is null or schema_name not in (
           'auth', 'storage', 'realtime', '_realtime')), false)
    into counts, is_news
    from pg_event_trigger_ddl_commands()
    where not in_extension and schema_name is distinct from 'pg_temp';
  if counts or tg_tag = 'DROP OWNED' then
    insert into toft.schema_change values (1 + ('x' || right(gen_random_uuid()::text, 10))::bit(40)::bigint);
  end if;
  if is_news then
    perform pg_notify('pgrst', 'reload schema');
  end if;
end $$;

create function toft.note_drop() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  counts boolean;
  is_news boolean;
begin
  -- The rule of a temporary view does not say that it is temporary.
  select count(*) > 0, coalesce(bool_or(schema_name is null or schema_name not in (
           'auth', 'storage', 'realtime', '_realtime')), false)
    into counts, is_news
    from pg_event_trigger_dropped_objects()
    where not is_temporary and (original or object_type not in ('rule', 'trigger'));
  if counts then
    insert into toft.schema_change values (1 + ('x' || right(gen_random_uuid()::text, 10))::bit(40)::bigint);
  end if;
  if is_news then
    perform pg_notify('pgrst', 'reload schema');
  end if;
end $$;

-- Event triggers do not see shared objects, so those that a schema cache keeps are hashed: names of roles,
-- memberships, settings of roles and databases. Never passwords: clones of one template must agree.
create function toft.schema_version() returns text
language plpgsql stable security definer parallel safe set search_path = pg_catalog, pg_temp as $$
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
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
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
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  with gone as (delete from toft.schema_change returning weight)
  insert into toft.schema_change select sum(weight) from gone having count(*) > 0
$$;
