-- Toft's stand-in for hypopg: no hypothetical index can be made.

create function hypopg_create_index(sql_order text, out indexrelid oid, out indexname text) returns setof record
language plpgsql as $$
begin
  raise exception using errcode = '0A000', message = 'hypopg is a stand-in: hypothetical indexes are not available';
end $$;
comment on function hypopg_create_index(text) is 'Stand-in by Toft: refuses.';

create function hypopg_reset() returns void
language sql
begin atomic
end;
