-- Toft's stand-in for http: its types and functions exist, so that what mentions them can be made, and every
-- call that would go out is refused with 0A000.

create domain http_method as text;
create type http_header as (field varchar, value varchar);
create type http_response as (status integer, content_type varchar, headers http_header[], content varchar);
create type http_request as (
  method http_method, uri varchar, headers http_header[], content_type varchar, content varchar);

create function http(request http_request) returns http_response
language plpgsql as $$
begin
  raise exception using errcode = '0A000', message = 'outbound HTTP is off in this instance',
    detail = 'The extension http is a stand-in.', hint = 'Call the service from an edge function or from your app.';
end $$;
comment on function http(http_request) is 'Stand-in by Toft: refuses, outbound HTTP is off.';

create function http_header(field varchar, value varchar) returns http_header
language sql immutable
return row(field, value)::http_header;

create function urlencode(string bytea) returns text
language plpgsql immutable strict set search_path = pg_catalog, pg_temp as $$
declare
  coded text := '';
  octet integer;
begin
  for i in 0 .. length(string) - 1 loop
    octet := get_byte(string, i);
    coded := coded || case
      when octet between 1 and 127 and chr(greatest(octet, 1)) ~ '^[A-Za-z0-9_.*-]$' then chr(octet)
      when octet = 32 then '+' else '%' || upper(lpad(to_hex(octet), 2, '0')) end;
  end loop;
  return coded;
end $$;
create function urlencode(string varchar) returns text
language sql immutable strict
return @extschema@.urlencode(convert_to(string, 'UTF8'));
create function urlencode(data jsonb) returns text
language sql immutable strict
begin atomic
  select string_agg(@extschema@.urlencode(key) || '=' || @extschema@.urlencode(value), '&')
  from jsonb_each_text(data);
end;

create function http_get(uri varchar) returns http_response
language sql
return @extschema@.http(row('GET', uri, null, null, null)::http_request);
create function http_get(uri varchar, data jsonb) returns http_response
language sql
return @extschema@.http(row('GET', uri || '?' || @extschema@.urlencode(data), null, null, null)::http_request);
create function http_post(uri varchar, content varchar, content_type varchar) returns http_response
language sql
return @extschema@.http(row('POST', uri, null, content_type, content)::http_request);
create function http_post(uri varchar, data jsonb) returns http_response
language sql
return @extschema@.http(
  row('POST', uri, null, 'application/x-www-form-urlencoded', @extschema@.urlencode(data))::http_request);
create function http_put(uri varchar, content varchar, content_type varchar) returns http_response
language sql
return @extschema@.http(row('PUT', uri, null, content_type, content)::http_request);
create function http_patch(uri varchar, content varchar, content_type varchar) returns http_response
language sql
return @extschema@.http(row('PATCH', uri, null, content_type, content)::http_request);
create function http_delete(uri varchar) returns http_response
language sql
return @extschema@.http(row('DELETE', uri, null, null, null)::http_request);
create function http_delete(uri varchar, content varchar, content_type varchar) returns http_response
language sql
return @extschema@.http(row('DELETE', uri, null, content_type, content)::http_request);
create function http_head(uri varchar) returns http_response
language sql
return @extschema@.http(row('HEAD', uri, null, null, null)::http_request);

create function http_set_curlopt(curlopt varchar, value varchar) returns boolean
language sql
return true;
create function http_reset_curlopt() returns boolean
language sql
return true;
create function http_list_curlopt() returns table (curlopt text, value text)
language sql
begin atomic
  select null::text, null::text where false;
end;

create function text_to_bytea(data text) returns bytea
language sql immutable strict
return convert_to(data, 'UTF8');
create function bytea_to_text(data bytea) returns text
language sql immutable strict
return convert_from(data, 'UTF8');
