-- What policies and triggers call. Runs as supabase_storage_admin. Everything runs with its caller's rights.

-- All segments of a key but the last: {} at the root.
create function storage.foldername(name text) returns text[]
language sql immutable
return (string_to_array(name, '/'))[1 : cardinality(string_to_array(name, '/')) - 1];

-- The last segment of a key.
create function storage.filename(name text) returns text
language sql immutable
return split_part(name, '/', -1);

-- What follows the last dot of the last segment; the whole segment when it has none.
create function storage.extension(name text) returns text
language sql immutable
return split_part(split_part(name, '/', -1), '.', -1);

-- Which route of the Storage API is at work, such as `storage.object.upload`.
create function storage.operation() returns text
language sql stable
return current_setting('storage.operation', true);

-- Both take names with and without the prefix `storage.`.
create function storage.allow_only_operation(expected_operation text) returns boolean
language sql stable
return coalesce(
  nullif(regexp_replace(expected_operation, '^storage\.', ''), '')
    = regexp_replace(storage.operation(), '^storage\.', ''),
  false
);

create function storage.allow_any_operation(expected_operations text[]) returns boolean
language sql stable
return exists (
  select from unnest(expected_operations) as expected (operation)
  where storage.allow_only_operation(expected.operation)
);

create function storage.get_size_by_bucket() returns table (size bigint, bucket_id text)
language sql stable
as $$
  select sum((o.metadata ->> 'size')::bigint)::bigint, o.bucket_id
  from storage.objects o
  group by o.bucket_id
$$;

-- Tries an insert under the caller's policies and takes it back: success is the error PT200.
create function storage.can_insert_object(bucketid text, name text, owner uuid, metadata jsonb) returns void
language plpgsql
as $$
begin
  insert into storage.objects (bucket_id, name, owner, metadata)
  values (can_insert_object.bucketid, can_insert_object.name, can_insert_object.owner, can_insert_object.metadata);
  raise exception using errcode = 'PT200', message = 'ROLLBACK', detail = 'the insert is allowed; it was undone';
end
$$;

-- Triggers ----------------------------------------------------------------------------------------------

create function storage.update_updated_at_column() returns trigger
language plpgsql
as $$
begin
  new.updated_at := now();
  return new;
end
$$;

create function storage.enforce_bucket_name_length() returns trigger
language plpgsql
as $$
begin
  if length(new.name) > 100 then
    raise exception 'bucket name "%" is too long (% characters). Max is 100.', new.name, length(new.name);
  end if;
  return new;
end
$$;

-- Rows go only together with their bytes: whoever deletes by SQL has to say that they know.
create function storage.protect_delete() returns trigger
language plpgsql
as $$
begin
  if current_setting('storage.allow_delete_query', true) is distinct from 'true' then
    raise exception using
      errcode = '42501',
      message = 'Direct deletion from storage tables is not allowed. Use the Storage API instead.',
      hint = 'Deleting rows would leave their bytes behind. To do it anyway: set storage.allow_delete_query = ''true''.';
  end if;
  return null;
end
$$;

create trigger update_objects_updated_at before update on storage.objects
  for each row execute function storage.update_updated_at_column();
create trigger enforce_bucket_name_length_trigger before insert or update of name on storage.buckets
  for each row execute function storage.enforce_bucket_name_length();
create trigger protect_objects_delete before delete on storage.objects
  for each statement execute function storage.protect_delete();
create trigger protect_buckets_delete before delete on storage.buckets
  for each statement execute function storage.protect_delete();
