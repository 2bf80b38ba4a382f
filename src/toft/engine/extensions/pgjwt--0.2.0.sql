-- Toft's stand-in for pgjwt. The bodies are bound when they are made, so no search_path changes their meaning.

create function url_encode(data bytea) returns text
language sql immutable
return rtrim(translate(encode(data, 'base64'), E'+/\n', '-_'), '=');

create function url_decode(data text) returns bytea
language sql immutable
return decode(translate(data, '-_', '+/') || repeat('=', (4 - length(data) % 4) % 4), 'base64');

create function algorithm_sign(signables text, secret text, algorithm text) returns text
language sql immutable
return @extschema@.url_encode(hmac(signables, secret, case algorithm
  when 'HS256' then 'sha256' when 'HS384' then 'sha384' when 'HS512' then 'sha512' else '' end));

create function sign(payload json, secret text, algorithm text default 'HS256') returns text
language sql immutable
begin atomic
  select signables || '.' || @extschema@.algorithm_sign(signables, secret, algorithm)
  from (select @extschema@.url_encode(convert_to('{"alg":"' || algorithm || '","typ":"JWT"}', 'UTF8'))
            || '.' || @extschema@.url_encode(convert_to(payload::text, 'UTF8'))) t (signables);
end;

create function try_cast_double(inp text) returns double precision
language plpgsql immutable as $$
begin
  return inp::double precision;
exception when others then
  return null;
end $$;

create function verify(token text, secret text, algorithm text default 'HS256')
returns table (header json, payload json, valid boolean)
language sql stable
begin atomic
  select convert_from(@extschema@.url_decode(part[1]), 'UTF8')::json,
         claims,
         part[3] = @extschema@.algorithm_sign(part[1] || '.' || part[2], secret, algorithm)
           and coalesce(extract(epoch from current_timestamp) >= @extschema@.try_cast_double(claims ->> 'nbf'), true)
           and coalesce(extract(epoch from current_timestamp) < @extschema@.try_cast_double(claims ->> 'exp'), true)
  from (select part, convert_from(@extschema@.url_decode(part[2]), 'UTF8')::json as claims
        from (select string_to_array(token, '.') as part) s) t;
end;
