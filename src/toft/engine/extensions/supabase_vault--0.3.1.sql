-- Toft's stand-in for supabase_vault. Nothing here is encrypted: whoever may read `vault.secrets` reads the
-- secret. On the platform that column holds the encrypted form.

create table vault.secrets (
  id uuid primary key default gen_random_uuid(),
  name text,
  description text not null default '',
  secret text not null,
  key_id uuid,
  nonce bytea,
  created_at timestamptz not null default current_timestamp,
  updated_at timestamptz not null default current_timestamp
);
create unique index secrets_name_idx on vault.secrets (name) where name is not null;
comment on table vault.secrets is 'Stand-in by Toft: the column secret is NOT encrypted.';
select pg_extension_config_dump('vault.secrets', '');

create view vault.decrypted_secrets with (security_barrier = true) as
  select id, name, description, secret, secret as decrypted_secret, key_id, nonce, created_at, updated_at
  from vault.secrets;

-- These write as the superuser, so their bodies are bound to the table when they are made: no name is looked
-- up again, whoever owns the schema then.
create function vault.create_secret(
  new_secret text, new_name text default null, new_description text default '', new_key_id uuid default null)
returns uuid
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  insert into vault.secrets (secret, name, description, key_id)
  values (new_secret, new_name, coalesce(new_description, ''), new_key_id)
  returning id;
end;

create function vault.update_secret(
  secret_id uuid, new_secret text default null, new_name text default null,
  new_description text default null, new_key_id uuid default null)
returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  update vault.secrets s
  set secret = coalesce(new_secret, s.secret),
      name = coalesce(new_name, s.name),
      description = coalesce(new_description, s.description),
      key_id = coalesce(new_key_id, s.key_id),
      updated_at = current_timestamp
  where s.id = secret_id;
end;

revoke all on function vault.create_secret(text, text, text, uuid) from public;
revoke all on function vault.update_secret(uuid, text, text, text, uuid) from public;
grant execute on function vault.create_secret(text, text, text, uuid) to postgres, service_role;
grant execute on function vault.update_secret(uuid, text, text, text, uuid) to postgres, service_role;
grant select, delete on vault.secrets, vault.decrypted_secrets to postgres, service_role;
