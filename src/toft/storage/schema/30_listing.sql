-- Listing keys as files and folders. Runs as supabase_storage_admin; rows are judged as the caller.

-- The part of a key up to and including the first delimiter after the prefix: its folder. NULL for a file.
create function storage.get_common_prefix(p_key text, p_prefix text, p_delimiter text) returns text
language sql immutable
return left(
  p_key,
  length(p_prefix) + nullif(position(p_delimiter in substr(p_key, length(p_prefix) + 1)), 0)
);

-- Walks one level of a bucket along an index on the key. Ours; the functions below are fronts of it.
--
-- Rows come in key order from one range scan. A folder is told once; when the scan has passed a few more of its
-- rows, it is left and a new scan starts behind the folder, so that a folder costs a handful of rows however
-- many it holds, and a run of files costs no new scans.
--
-- is_folded: compare keys in lower case. bound: where to start, inside the prefix, already in that case: the
-- lowest key still wanted when ascending, the first key not wanted any more when descending; NULL: at the end.
create function storage.toft_walk(
  bucket text, prefix text, delimiter text, is_folded boolean, is_ascending boolean, bound text,
  skip integer, wanted integer
) returns table (
  entry text, is_folder boolean, id uuid, metadata jsonb,
  updated_at timestamptz, created_at timestamptz, last_accessed_at timestamptz
)
language plpgsql stable
-- the keys' order is in the index; without statistics the planner would rather fetch everything and sort
set enable_sort = off
as $$
declare
  top constant text := chr(1114111);          -- sorts behind every character of a key
  patience constant integer := 2;             -- rows of one folder to pass before leaping over it
  key text := case when is_folded then 'lower(o.name)' else 'o.name' end || ' collate "C"';
  scan text := format(
    'select o.name, %1$s as key, o.id, o.metadata, o.updated_at, o.created_at, o.last_accessed_at'
    ' from storage.objects o where o.bucket_id = $1 and %1$s >= $2 and %1$s < $3'
    ' order by %1$s %2$s limit $4',
    key, case when is_ascending then 'asc' else 'desc' end
  );
  -- what has to be passed over is counted in one piece as long as there are only files in it
  skim text := format(
    'select count(*), %3$s(s.key collate "C"), coalesce(bool_or(position($5 in substr(s.key, $6)) > 0), false)'
    ' from (select %1$s as key from storage.objects o where o.bucket_id = $1 and %1$s >= $2 and %1$s < $3'
    ' order by %1$s %2$s limit $4) s',
    key, case when is_ascending then 'asc' else 'desc' end, case when is_ascending then 'max' else 'min' end
  );
  can_skim boolean := true;
  asked integer;
  has_folders boolean;
  batch integer := least(greatest(wanted, 100), 1000);
  root text := case when is_folded then lower(prefix) else prefix end;
  low text := root;
  high text := root || top;
  folder text;                                -- the folder that was told last
  passed integer;
  fetched integer;
  has_leapt boolean;
  found_row record;
  here text;
begin
  if is_ascending then
    low := greatest(low collate "C", bound);
  else
    high := least(high collate "C", bound);
  end if;
  while wanted > 0 loop
    if can_skim and skip > 100 then
      asked := least(skip, 10000);
      execute skim into fetched, here, has_folders
        using bucket, low, high, asked, delimiter, length(root) + 1;
      if has_folders then
        can_skim := false;
      elsif fetched < asked then
        exit;
      else
        skip := skip - fetched;
        if is_ascending then
          low := here || chr(1);
        else
          high := here;
        end if;
        continue;
      end if;
    end if;
    fetched := 0;
    has_leapt := false;
    for found_row in execute scan using bucket, low, high, batch loop
      fetched := fetched + 1;
      here := storage.get_common_prefix(found_row.key, root, delimiter);
      if here is null or here is distinct from folder then
        if skip > 0 then
          skip := skip - 1;
        else
          is_folder := here is not null;
          if is_folder then
            entry := left(found_row.name, length(here) - length(delimiter));
            id := null;
            metadata := null;
            updated_at := null;
            created_at := null;
            last_accessed_at := null;
          else
            entry := found_row.name;
            id := found_row.id;
            metadata := found_row.metadata;
            updated_at := found_row.updated_at;
            created_at := found_row.created_at;
            last_accessed_at := found_row.last_accessed_at;
          end if;
          return next;
          wanted := wanted - 1;
          exit when wanted = 0;
        end if;
        passed := 0;
      else
        passed := passed + 1;
      end if;
      folder := here;
      if passed >= patience then
        has_leapt := true;
        exit;
      end if;
    end loop;
    if has_leapt then
      if is_ascending then
        low := folder || top;
      else
        high := folder;
      end if;
    elsif fetched < batch then
      exit;
    elsif is_ascending then
      low := found_row.key || chr(1);         -- the very next text after the key
    else
      high := found_row.key;
    end if;
  end loop;
end
$$;

-- One level of a bucket in key order, case-sensitive. Names are whole keys; folders come without delimiter.
--
-- start_after: the last name of the page before; when keys exist below it, it was a folder. next_token: the same
-- without guessing: a folder ends with the delimiter (and is not the prefix itself, which may be an object).
create function storage.list_objects_with_delimiter(
  _bucket_id text, prefix_param text, delimiter_param text, max_keys integer default 100,
  start_after text default '', next_token text default '', sort_order text default 'asc'
) returns table (
  name text, id uuid, metadata jsonb,
  updated_at timestamptz, created_at timestamptz, last_accessed_at timestamptz
)
language plpgsql stable
as $$
declare
  is_ascending constant boolean := lower(coalesce(sort_order, 'asc')) = 'asc';
  cursor_key text := coalesce(nullif(next_token, ''), nullif(start_after, ''));
  bound text;
begin
  if coalesce(next_token, '') = '' and cursor_key is not null
    and right(cursor_key, length(delimiter_param)) <> delimiter_param
    and exists (
      select from storage.objects o
      where o.bucket_id = _bucket_id
        and o.name collate "C" >= cursor_key || delimiter_param
        and o.name collate "C" < cursor_key || delimiter_param || chr(1114111)
    )
  then
    cursor_key := cursor_key || delimiter_param;
  end if;
  if not is_ascending then
    bound := cursor_key;
  elsif right(cursor_key, length(delimiter_param)) = delimiter_param and cursor_key <> prefix_param then
    bound := cursor_key || chr(1114111);
  else
    bound := cursor_key || chr(1);
  end if;
  return query
    select w.entry, w.id, w.metadata, w.updated_at, w.created_at, w.last_accessed_at
    from storage.toft_walk(
      _bucket_id, coalesce(prefix_param, ''), delimiter_param, false, is_ascending, bound, 0, max_keys
    ) w;
end
$$;

-- One level below a prefix; names are relative to it, folders and files together. By name it ignores case; by a
-- time all folders come first. `search` is the beginning of the names wanted and may itself have folders.
create function storage.search(
  prefix text, bucketname text, limits integer default 100, levels integer default 1,
  offsets integer default 0, search text default '', sortcolumn text default 'name',
  sortorder text default 'asc'
) returns table (
  name text, id uuid, updated_at timestamptz, created_at timestamptz, last_accessed_at timestamptz,
  metadata jsonb
)
language plpgsql stable
as $$
declare
  is_ascending constant boolean := lower(coalesce(sortorder, 'asc')) = 'asc';
  direction constant text := case when is_ascending then 'asc' else 'desc' end;
  wanted constant integer := least(coalesce(limits, 100), 1500);
  skip constant integer := greatest(coalesce(offsets, 0), 0);
  whole constant text := coalesce(prefix, '') || coalesce(search, '');
  first constant integer := length(coalesce(prefix, '')) + 1;
  sort_column text := lower(coalesce(sortcolumn, 'name'));
begin
  if sort_column not in ('updated_at', 'created_at', 'last_accessed_at') then
    return query
      select substr(w.entry, first), w.id, w.updated_at, w.created_at, w.last_accessed_at, w.metadata
      from storage.toft_walk(bucketname, whole, '/', true, is_ascending, null, skip, wanted) w;
    return;
  end if;
  return query execute format(
    'with below as ('
    '  select o.*, substr(left(storage.get_common_prefix(o.name, $2, ''/''), -1), $3) as folder'
    '  from storage.objects o'
    '  where o.bucket_id = $1 and lower(o.name) collate "C" >= lower($2)'
    '    and lower(o.name) collate "C" < lower($2) || chr(1114111)'
    '), level as ('
    '  select distinct folder as name, null::uuid as id, null::timestamptz as updated_at,'
    '    null::timestamptz as created_at, null::timestamptz as last_accessed_at, null::jsonb as metadata'
    '  from below where folder is not null'
    '  union all'
    '  select substr(name, $3), id, updated_at, created_at, last_accessed_at, metadata'
    '  from below where folder is null'
    ')'
    ' select name, id, updated_at, created_at, last_accessed_at, metadata from level'
    ' order by id is not null, case when id is null then name end collate "C" %2$s, %1$I %2$s, name collate "C"'
    ' limit $4 offset $5',
    sort_column, direction
  ) using bucketname, whole, first, wanted, skip;
end
$$;

-- One level below a prefix by a time, folders among the files: a folder is as old as its oldest object. Pages on
-- (time in milliseconds, name).
create function storage.search_by_timestamp(
  p_prefix text, p_bucket_id text, p_limit integer, p_level integer, p_start_after text, p_sort_order text,
  p_sort_column text, p_sort_column_after text
) returns table (
  key text, name text, id uuid, updated_at timestamptz, created_at timestamptz, last_accessed_at timestamptz,
  metadata jsonb
)
language plpgsql stable
as $$
declare
  is_ascending constant boolean := lower(coalesce(p_sort_order, 'asc')) = 'asc';
begin
  return query execute format(
    'with below as ('
    '  select o.*, left(storage.get_common_prefix(o.name, $1, ''/''), -1) as folder'
    '  from storage.objects o'
    '  where o.bucket_id = $2 and o.name collate "C" >= $1 and o.name collate "C" < $1 || chr(1114111)'
    '), level as ('
    '  select folder as name, null::uuid as id, min(created_at) as updated_at, min(created_at) as created_at,'
    '    null::timestamptz as last_accessed_at, null::jsonb as metadata'
    '  from below where folder is not null group by folder'
    '  union all'
    '  select name, id, updated_at, created_at, last_accessed_at, metadata from below where folder is null'
    '), timed as ('
    '  select *, coalesce(date_trunc(''milliseconds'', %1$I), ''epoch'') as at from level'
    ')'
    ' select split_part(name, ''/'', $3), name, id, updated_at, created_at, last_accessed_at, metadata'
    ' from timed'
    ' where $5 = '''' or (at, name collate "C") %2$s (coalesce(nullif($6, '''')::timestamptz, ''epoch''), $5)'
    ' order by at %3$s, name collate "C" %3$s limit $4',
    p_sort_column,
    case when is_ascending then '>' else '<' end,
    case when is_ascending then 'asc' else 'desc' end
  ) using coalesce(p_prefix, ''), p_bucket_id, p_level, p_limit, coalesce(p_start_after, ''),
    p_sort_column_after;
end
$$;

create function storage.search_v2(
  prefix text, bucket_name text, limits integer default 100, levels integer default 1,
  start_after text default '', sort_order text default 'asc', sort_column text default 'name',
  sort_column_after text default ''
) returns table (
  key text, name text, id uuid, updated_at timestamptz, created_at timestamptz, last_accessed_at timestamptz,
  metadata jsonb
)
language plpgsql stable
as $$
declare
  wanted constant integer := least(coalesce(limits, 100), 1500);
  direction constant text := case lower(sort_order) when 'desc' then 'desc' else 'asc' end;
begin
  if lower(sort_column) in ('updated_at', 'created_at') then
    return query
      select * from storage.search_by_timestamp(
        prefix, bucket_name, wanted, levels, start_after, direction, lower(sort_column), sort_column_after
      );
  else
    return query
      select split_part(l.name, '/', levels), l.name, l.id, l.updated_at, l.created_at, l.last_accessed_at,
        l.metadata
      from storage.list_objects_with_delimiter(
        bucket_name, prefix, '/', wanted, start_after, '', direction
      ) l;
  end if;
end
$$;

-- Unfinished uploads in key order; several of one key by their age; a folder once.
create function storage.list_multipart_uploads_with_delimiter(
  bucket_id text, prefix_param text, delimiter_param text, max_keys integer default 100,
  next_key_token text default '', next_upload_token text default ''
) returns table (key text, id text, created_at timestamptz)
language sql
as $$
  with entry as (
    select
      coalesce(storage.get_common_prefix(u.key, prefix_param, delimiter_param), u.key) as key,
      storage.get_common_prefix(u.key, prefix_param, delimiter_param) is not null as is_folder,
      u.id, u.created_at
    from storage.s3_multipart_uploads u
    where u.bucket_id = list_multipart_uploads_with_delimiter.bucket_id
      and starts_with(u.key, prefix_param)
  ), once as (
    select distinct on (e.key collate "C", case when e.is_folder then '' else e.id end) e.*
    from entry e
    order by e.key collate "C", case when e.is_folder then '' else e.id end, e.created_at
  )
  select o.key, o.id, o.created_at
  from once o
  where next_key_token = ''
    or o.key collate "C" > next_key_token
    or (next_upload_token <> '' and o.key = next_key_token and o.id collate "C" > next_upload_token)
  order by o.key collate "C", o.id collate "C"
  limit max_keys
$$;

-- Every function may be called by everybody (the default); their rows are judged as the caller.
