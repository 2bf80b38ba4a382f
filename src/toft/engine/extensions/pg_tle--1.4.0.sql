-- Toft's stand-in for pg_tle: what would install an extension answers true and does nothing.

create function pgtle.install_extension(
  name text, version text, description text, ext text, requires text[] default null, schema text default null)
returns boolean
language sql
return true;
comment on function pgtle.install_extension(text, text, text, text, text[], text) is
  'Stand-in by Toft: answers true and installs nothing.';

create function pgtle.install_extension_version_sql(name text, version text, ext text) returns boolean
language sql
return true;
create function pgtle.install_update_path(name text, fromvers text, tovers text, ext text) returns boolean
language sql
return true;
create function pgtle.set_default_version(name text, version text) returns boolean
language sql
return true;
create function pgtle.uninstall_extension(extname text) returns boolean
language sql
return true;
create function pgtle.uninstall_extension(extname text, version text) returns boolean
language sql
return true;
create function pgtle.uninstall_extension_if_exists(extname text) returns boolean
language sql
return true;
create function pgtle.available_extensions(out name name, out default_version text, out comment text)
returns setof record
language sql
begin atomic
  select null::name, null::text, null::text where false;
end;

grant usage on schema pgtle to postgres;
