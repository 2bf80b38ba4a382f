-- Toft's stand-in for uuid-ossp: the same functions, in SQL.

create function uuid_nil() returns uuid
language sql immutable strict parallel safe as $$ select '00000000-0000-0000-0000-000000000000'::uuid $$;
create function uuid_ns_dns() returns uuid
language sql immutable strict parallel safe as $$ select '6ba7b810-9dad-11d1-80b4-00c04fd430c8'::uuid $$;
create function uuid_ns_url() returns uuid
language sql immutable strict parallel safe as $$ select '6ba7b811-9dad-11d1-80b4-00c04fd430c8'::uuid $$;
create function uuid_ns_oid() returns uuid
language sql immutable strict parallel safe as $$ select '6ba7b812-9dad-11d1-80b4-00c04fd430c8'::uuid $$;
create function uuid_ns_x500() returns uuid
language sql immutable strict parallel safe as $$ select '6ba7b814-9dad-11d1-80b4-00c04fd430c8'::uuid $$;

create function uuid_generate_v4() returns uuid
language sql volatile strict parallel safe as $$ select pg_catalog.gen_random_uuid() $$;

create function uuid_generate_v3(namespace uuid, name text) returns uuid
language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  raw bytea := decode(md5(uuid_send(namespace) || convert_to(name, 'UTF8')), 'hex');
begin
  raw := set_byte(raw, 6, (get_byte(raw, 6) & 15) | 48);
  raw := set_byte(raw, 8, (get_byte(raw, 8) & 63) | 128);
  return encode(raw, 'hex')::uuid;
end $$;

-- The server has no SHA-1 of its own and pgcrypto may not be there, so it is spelled out (FIPS 180-4).
create function uuid_generate_v5(namespace uuid, name text) returns uuid
language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  mask constant bigint := 4294967295;
  message bytea := uuid_send(namespace) || convert_to(name, 'UTF8');
  bits bigint := length(message)::bigint * 8;
  w bigint[];
  h0 bigint := 1732584193; h1 bigint := 4023233417; h2 bigint := 2562383102;
  h3 bigint := 271733878;  h4 bigint := 3285377520;
  a bigint; b bigint; c bigint; d bigint; e bigint; f bigint; k bigint; x bigint;
  raw bytea;
begin
  message := message || '\x80'::bytea;
  message := message || decode(repeat('00', (120 - length(message) % 64) % 64), 'hex') || int8send(bits);
  for chunk in 0 .. length(message) / 64 - 1 loop
    for i in 0 .. 15 loop
      w[i] := (get_byte(message, chunk * 64 + i * 4)::bigint << 24)
            | (get_byte(message, chunk * 64 + i * 4 + 1) << 16)
            | (get_byte(message, chunk * 64 + i * 4 + 2) << 8)
            | get_byte(message, chunk * 64 + i * 4 + 3);
    end loop;
    for i in 16 .. 79 loop
      x := w[i - 3] # w[i - 8] # w[i - 14] # w[i - 16];
      w[i] := ((x << 1) | (x >> 31)) & mask;
    end loop;
    a := h0; b := h1; c := h2; d := h3; e := h4;
    for i in 0 .. 79 loop
      if i < 20 then
        f := (b & c) | (~b & mask & d); k := 1518500249;
      elsif i < 40 then
        f := b # c # d; k := 1859775393;
      elsif i < 60 then
        f := (b & c) | (b & d) | (c & d); k := 2400959708;
      else
        f := b # c # d; k := 3395469782;
      end if;
      x := ((((a << 5) | (a >> 27)) & mask) + f + e + k + w[i]) & mask;
      e := d; d := c; c := ((b << 30) | (b >> 2)) & mask; b := a; a := x;
    end loop;
    h0 := (h0 + a) & mask; h1 := (h1 + b) & mask; h2 := (h2 + c) & mask;
    h3 := (h3 + d) & mask; h4 := (h4 + e) & mask;
  end loop;
  raw := substr(int8send((h0 << 32) | h1) || int8send((h2 << 32) | h3), 1, 16);
  raw := set_byte(raw, 6, (get_byte(raw, 6) & 15) | 80);
  raw := set_byte(raw, 8, (get_byte(raw, 8) & 63) | 128);
  return encode(raw, 'hex')::uuid;
end $$;

-- Time-based, with a random node (multicast bit set, as RFC 9562 asks where no card is named).
create function uuid_generate_v1mc() returns uuid
language plpgsql volatile strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  ticks bigint := (extract(epoch from clock_timestamp()) * 10000000)::bigint + 122192928000000000;
  node bytea := uuid_send(gen_random_uuid());
begin
  return encode(
    substr(int8send(ticks), 5, 4) || substr(int8send(ticks), 3, 2)
    || int2send((((ticks >> 48) & 4095) | 4096)::smallint)
    || set_byte(substr(node, 1, 2), 0, (get_byte(node, 0) & 63) | 128)
    || set_byte(substr(node, 11, 6), 0, get_byte(node, 10) | 1),
    'hex')::uuid;
end $$;

create function uuid_generate_v1() returns uuid
language plpgsql volatile strict parallel safe as $$
begin
  return @extschema@.uuid_generate_v1mc();
end $$;
