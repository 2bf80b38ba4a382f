-- Toft's stand-in for pgmq, in SQL as the original: queues are two tables each, owned by whoever creates them,
-- and everything runs with the caller's own rights. Partitioned queues are refused.

create table pgmq.meta (
  queue_name varchar not null unique,
  is_partitioned boolean not null,
  is_unlogged boolean not null,
  created_at timestamptz not null default current_timestamp
);
select pg_catalog.pg_extension_config_dump('pgmq.meta', '');

create type pgmq.message_record as (
  msg_id bigint, read_ct integer, enqueued_at timestamptz, vt timestamptz, message jsonb, headers jsonb);
create type pgmq.queue_record as (
  queue_name varchar, is_partitioned boolean, is_unlogged boolean, created_at timestamptz);
create type pgmq.metrics_result as (
  queue_name text, queue_length bigint, newest_msg_age_sec integer, oldest_msg_age_sec integer,
  total_messages bigint, scrape_time timestamptz, queue_visible_length bigint);

create function pgmq.format_table_name(queue_name text, prefix text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
  if queue_name !~ '^[A-Za-z0-9_ .-]+$' or queue_name ~ '--' then
    raise exception using errcode = '22023', message = 'queue name contains invalid characters: $, ;, --, or ''';
  end if;
  return lower(prefix || '_' || queue_name);
end $$;

create function pgmq.validate_queue_name(queue_name text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if length(queue_name) > 47 then
    raise exception using errcode = '22023', message = 'queue name is too long, maximum length is 47 characters';
  end if;
end $$;

-- Queues -----------------------------------------------------------------------------------------

create function pgmq._create(queue_name text, unlogged boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  queue constant text := pgmq.format_table_name(queue_name, 'q');
  archive constant text := pgmq.format_table_name(queue_name, 'a');
begin
  perform pgmq.validate_queue_name(queue_name);
  if exists (select from pgmq.meta m where m.queue_name = _create.queue_name) then
    return;
  end if;
  execute format('create %s table pgmq.%I (
      msg_id bigint generated always as identity primary key,
      read_ct integer not null default 0,
      enqueued_at timestamptz not null default now(),
      vt timestamptz not null,
      message jsonb,
      headers jsonb)', case when unlogged then 'unlogged' else '' end, queue);
  execute format('create table pgmq.%I (
      msg_id bigint primary key,
      read_ct integer not null default 0,
      enqueued_at timestamptz not null default now(),
      archived_at timestamptz not null default now(),
      vt timestamptz not null,
      message jsonb,
      headers jsonb)', archive);
  execute format('create index %I on pgmq.%I (vt)', queue || '_vt_idx', queue);
  execute format('create index %I on pgmq.%I (archived_at)', 'archived_at_idx_' || queue_name, archive);
  insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values (_create.queue_name, false, unlogged);
end $$;

create function pgmq.create(queue_name text) returns void
language sql
return pgmq._create(queue_name, false);
create function pgmq.create_non_partitioned(queue_name text) returns void
language sql
return pgmq._create(queue_name, false);
create function pgmq.create_unlogged(queue_name text) returns void
language sql
return pgmq._create(queue_name, true);
create function pgmq.create_partitioned(
  queue_name text, partition_interval text default '10000', retention_interval text default '100000')
returns void
language plpgsql as $$
begin
  raise exception using errcode = '0A000', message = 'pgmq is a stand-in: it has no partitioned queues',
    hint = 'pgmq.create(queue_name) makes an ordinary one.';
end $$;

create function pgmq.drop_queue(queue_name text) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from pgmq.meta m where m.queue_name = drop_queue.queue_name) then
    raise notice 'pgmq queue % does not exist', queue_name;
    return false;
  end if;
  execute format('drop table if exists pgmq.%I', pgmq.format_table_name(queue_name, 'q'));
  execute format('drop table if exists pgmq.%I', pgmq.format_table_name(queue_name, 'a'));
  delete from pgmq.meta m where m.queue_name = drop_queue.queue_name;
  return true;
end $$;
create function pgmq.drop_queue(queue_name text, partitioned boolean) returns boolean
language sql
return pgmq.drop_queue(queue_name);

create function pgmq.purge_queue(queue_name text) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  gone bigint;
begin
  execute format('delete from pgmq.%I', pgmq.format_table_name(queue_name, 'q'));
  get diagnostics gone = row_count;
  return gone;
end $$;

create function pgmq.list_queues() returns setof pgmq.queue_record
language sql
begin atomic
  select queue_name, is_partitioned, is_unlogged, created_at from pgmq.meta;
end;

create function pgmq.metrics(queue_name text) returns pgmq.metrics_result
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  answer pgmq.metrics_result;
  queue constant text := pgmq.format_table_name(queue_name, 'q');
begin
  execute format('select $1, count(*),
      extract(epoch from now() - max(enqueued_at))::integer, extract(epoch from now() - min(enqueued_at))::integer,
      coalesce(pg_sequence_last_value(pg_get_serial_sequence(''pgmq.%s'', ''msg_id'')::regclass), 0),
      now(), count(*) filter (where vt <= now()) from pgmq.%I',
      replace(quote_ident(queue), '''', ''''''), queue) into answer using queue_name;
  return answer;
end $$;
create function pgmq.metrics_all() returns setof pgmq.metrics_result
language sql
begin atomic
  select (pgmq.metrics(queue_name)).* from pgmq.meta;
end;

-- Messages ---------------------------------------------------------------------------------------

create function pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[], delay timestamptz) returns setof bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if msgs is null or cardinality(msgs) = 0 then
    raise exception using errcode = '22023', message = 'msgs cannot be NULL or empty';
  end if;
  if headers is not null and cardinality(headers) <> cardinality(msgs) then
    raise exception using errcode = '22023', message = 'headers array must be of the same length as msgs array';
  end if;
  return query execute format('insert into pgmq.%I (vt, message, headers)
      select $3, m, h from unnest($1, $2) with ordinality u (m, h, place) order by place
      returning msg_id', pgmq.format_table_name(queue_name, 'q'))
    using msgs, coalesce(headers, array_fill(null::jsonb, array[cardinality(msgs)])), delay;
end $$;
create function pgmq.send_batch(queue_name text, msgs jsonb[]) returns setof bigint
language sql
begin atomic
  select pgmq.send_batch(queue_name, msgs, null::jsonb[], clock_timestamp());
end;
create function pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[]) returns setof bigint
language sql
begin atomic
  select pgmq.send_batch(queue_name, msgs, headers, clock_timestamp());
end;
create function pgmq.send_batch(queue_name text, msgs jsonb[], delay integer) returns setof bigint
language sql
begin atomic
  select pgmq.send_batch(queue_name, msgs, null::jsonb[], clock_timestamp() + make_interval(secs => delay));
end;
create function pgmq.send_batch(queue_name text, msgs jsonb[], delay timestamptz) returns setof bigint
language sql
begin atomic
  select pgmq.send_batch(queue_name, msgs, null::jsonb[], delay);
end;
create function pgmq.send_batch(queue_name text, msgs jsonb[], headers jsonb[], delay integer) returns setof bigint
language sql
begin atomic
  select pgmq.send_batch(queue_name, msgs, headers, clock_timestamp() + make_interval(secs => delay));
end;

create function pgmq.send(queue_name text, msg jsonb, headers jsonb, delay timestamptz) returns setof bigint
language sql
begin atomic
  select pgmq.send_batch(queue_name, array[msg], array[headers], delay);
end;
create function pgmq.send(queue_name text, msg jsonb) returns setof bigint
language sql
begin atomic
  select pgmq.send(queue_name, msg, null::jsonb, clock_timestamp());
end;
create function pgmq.send(queue_name text, msg jsonb, headers jsonb) returns setof bigint
language sql
begin atomic
  select pgmq.send(queue_name, msg, headers, clock_timestamp());
end;
create function pgmq.send(queue_name text, msg jsonb, delay integer) returns setof bigint
language sql
begin atomic
  select pgmq.send(queue_name, msg, null::jsonb, clock_timestamp() + make_interval(secs => delay));
end;
create function pgmq.send(queue_name text, msg jsonb, delay timestamptz) returns setof bigint
language sql
begin atomic
  select pgmq.send(queue_name, msg, null::jsonb, delay);
end;
create function pgmq.send(queue_name text, msg jsonb, headers jsonb, delay integer) returns setof bigint
language sql
begin atomic
  select pgmq.send(queue_name, msg, headers, clock_timestamp() + make_interval(secs => delay));
end;

create function pgmq.read(queue_name text, vt integer, qty integer, conditional jsonb default '{}')
returns setof pgmq.message_record
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return query execute format('with next as (
        select msg_id from pgmq.%1$I
        where vt <= clock_timestamp() and message @> $3
        order by msg_id limit $1 for update skip locked)
      update pgmq.%1$I q set vt = clock_timestamp() + $2, read_ct = read_ct + 1
      from next where q.msg_id = next.msg_id
      returning q.msg_id, q.read_ct, q.enqueued_at, q.vt, q.message, q.headers',
      pgmq.format_table_name(queue_name, 'q'))
    using qty, make_interval(secs => vt), coalesce(conditional, '{}');
end $$;

create function pgmq.read_with_poll(
  queue_name text, vt integer, qty integer, max_poll_seconds integer default 5, poll_interval_ms integer default 100,
  conditional jsonb default '{}')
returns setof pgmq.message_record
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  until constant timestamptz := clock_timestamp() + make_interval(secs => max_poll_seconds);
begin
  loop
    return query select * from pgmq.read(queue_name, vt, qty, conditional);
    if found or clock_timestamp() >= until then
      return;
    end if;
    perform pg_sleep(poll_interval_ms / 1000.0);
  end loop;
end $$;

create function pgmq.pop(queue_name text) returns setof pgmq.message_record
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return query execute format('delete from pgmq.%1$I where msg_id = (
        select msg_id from pgmq.%1$I where vt <= clock_timestamp() order by msg_id limit 1 for update skip locked)
      returning msg_id, read_ct, enqueued_at, vt, message, headers', pgmq.format_table_name(queue_name, 'q'));
end $$;

create function pgmq.set_vt(queue_name text, msg_id bigint, vt integer) returns setof pgmq.message_record
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return query execute format('update pgmq.%I set vt = clock_timestamp() + $2 where msg_id = $1
      returning msg_id, read_ct, enqueued_at, vt, message, headers', pgmq.format_table_name(queue_name, 'q'))
    using msg_id, make_interval(secs => vt);
end $$;

create function pgmq.delete(queue_name text, msg_ids bigint[]) returns setof bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return query execute format('delete from pgmq.%I where msg_id = any ($1) returning msg_id',
      pgmq.format_table_name(queue_name, 'q')) using msg_ids;
end $$;
create function pgmq.delete(queue_name text, msg_id bigint) returns boolean
language sql
return exists (select from pgmq.delete(queue_name, array[msg_id]) gone);

create function pgmq.archive(queue_name text, msg_ids bigint[]) returns setof bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return query execute format('with gone as (
        delete from pgmq.%I where msg_id = any ($1)
        returning msg_id, vt, read_ct, enqueued_at, message, headers)
      insert into pgmq.%I (msg_id, vt, read_ct, enqueued_at, message, headers)
      select msg_id, vt, read_ct, enqueued_at, message, headers from gone
      returning msg_id', pgmq.format_table_name(queue_name, 'q'), pgmq.format_table_name(queue_name, 'a'))
    using msg_ids;
end $$;
create function pgmq.archive(queue_name text, msg_id bigint) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform pgmq.archive(queue_name, array[msg_id]);
  return found;
end $$;

create function pgmq.detach_archive(queue_name text) returns void
language sql
begin atomic
end;

grant usage, create on schema pgmq to postgres with grant option;
grant all on pgmq.meta to postgres with grant option;
grant usage on schema pgmq to service_role;
