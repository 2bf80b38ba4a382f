-- The roles of a fresh Supabase database. The bootstrap superuser is `supabase_admin` (initdb -U).
-- Nobody has a password here: a clone's passwords are made when it is cloned.

create role postgres login createdb createrole replication bypassrls;

create role anon nologin;
create role authenticated nologin;
create role service_role nologin bypassrls;
create role authenticator login noinherit;

create role supabase_auth_admin login noinherit;
create role supabase_storage_admin login noinherit createrole;
create role supabase_realtime_admin nologin noinherit;
create role supabase_functions_admin login noinherit createrole;
create role supabase_replication_admin login replication;
create role supabase_read_only_user login bypassrls;
create role supabase_etl_admin nologin;
create role supabase_superuser nologin;
create role dashboard_user nologin createdb createrole replication;
create role pgbouncer login;

grant anon, authenticated, service_role to authenticator;
grant authenticator to supabase_storage_admin;
grant pg_read_all_data to supabase_read_only_user;
grant supabase_superuser to postgres, supabase_etl_admin;
grant pg_monitor, pg_read_all_data, pg_signal_backend to postgres;

alter role supabase_admin set search_path = "$user", public, auth, extensions;
alter role postgres set search_path = "$user", public, extensions;
alter role supabase_auth_admin set search_path = auth;
alter role supabase_auth_admin set idle_in_transaction_session_timeout = '60s';
alter role supabase_storage_admin set search_path = storage;
alter role supabase_functions_admin set search_path = supabase_functions;
alter role anon set statement_timeout = '3s';
alter role authenticated set statement_timeout = '8s';
alter role authenticator set statement_timeout = '8s';
alter role authenticator set lock_timeout = '8s';

alter database postgres owner to postgres;
