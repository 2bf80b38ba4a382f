-- What a project's SQL may mention although the service behind it is not part of a backend.

-- Supabase's Data API answers this way while pg_graphql is off, and here it always is.
create function graphql_public.graphql(
  "operationName" text default null, query text default null, variables jsonb default null,
  extensions jsonb default null)
returns jsonb
language sql
return '{"errors": [{"message": "pg_graphql is not available in this backend."}]}'::jsonb;

-- Database webhooks. Their rows in dumps are triggers that call this function.
create function supabase_functions.http_request() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  url constant text := tg_argv[0];
  method constant text := tg_argv[1];
  headers constant jsonb := coalesce(
    nullif(nullif(tg_argv[2], 'null'), ''), '{"Content-Type": "application/json"}');
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

-- Realtime: policies on its messages, and functions that triggers call. What would be sent is dropped with a
-- warning.
create table realtime.messages (
  topic text not null,
  extension text not null,
  payload jsonb,
  event text,
  private boolean default false,
  updated_at timestamp not null default now(),
  inserted_at timestamp not null default now(),
  id uuid not null default gen_random_uuid(),
  primary key (id, inserted_at)
) partition by range (inserted_at);
alter table realtime.messages enable row level security;
alter table realtime.messages owner to supabase_realtime_admin;
grant select, insert, update on realtime.messages to anon, authenticated, service_role;
grant all on realtime.messages to postgres, dashboard_user;
comment on table realtime.messages is 'Stand-in by Toft: takes policies and no rows.';

create function realtime.topic() returns text
language sql stable
return nullif(current_setting('realtime.topic', true), '');

create function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise warning using errcode = '0A000', message = 'Realtime is not part of this backend: the message is dropped';
end $$;

create function realtime.broadcast_changes(
  topic_name text, event_name text, operation text, table_name text, table_schema text,
  new record, old record, level text default 'ROW')
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform realtime.send(null, event_name, topic_name);
end $$;
