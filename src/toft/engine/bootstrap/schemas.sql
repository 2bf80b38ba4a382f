-- Schemas, who may use them, and what new objects in them are born with.

create schema auth authorization supabase_admin;
create schema storage authorization supabase_admin;
create schema realtime authorization supabase_admin;
create schema extensions authorization postgres;
create schema graphql authorization supabase_admin;
create schema graphql_public authorization supabase_admin;
create schema vault authorization supabase_admin;
create schema supabase_functions authorization supabase_admin;
create schema pgbouncer authorization pgbouncer;

-- public -----------------------------------------------------------------------------------------
grant usage on schema public to postgres, anon, authenticated, service_role;
alter default privileges for role postgres, supabase_admin in schema public
  grant all on tables to postgres, anon, authenticated, service_role;
alter default privileges for role postgres, supabase_admin in schema public
  grant all on functions to postgres, anon, authenticated, service_role;
alter default privileges for role postgres, supabase_admin in schema public
  grant all on sequences to postgres, anon, authenticated, service_role;

-- auth -------------------------------------------------------------------------------------------
grant usage on schema auth to postgres, anon, authenticated, service_role;
grant all on schema auth to supabase_auth_admin, dashboard_user;
alter default privileges for role supabase_auth_admin in schema auth
  grant all on tables to postgres, dashboard_user;
alter default privileges for role supabase_auth_admin in schema auth
  grant all on functions to postgres, dashboard_user;
alter default privileges for role supabase_auth_admin in schema auth
  grant all on sequences to postgres, dashboard_user;

-- storage ----------------------------------------------------------------------------------------
grant usage on schema storage to anon, authenticated, service_role;
grant usage on schema storage to postgres with grant option;
grant all on schema storage to supabase_storage_admin, dashboard_user;
-- Its tables are the Storage service's, which grants on each what it means to.
alter default privileges for role supabase_admin in schema storage
  grant all on tables to postgres, anon, authenticated, service_role;
alter default privileges for role supabase_admin in schema storage
  grant all on functions to postgres, anon, authenticated, service_role;
alter default privileges for role supabase_admin in schema storage
  grant all on sequences to postgres, anon, authenticated, service_role;

-- realtime ---------------------------------------------------------------------------------------
grant usage on schema realtime to anon, authenticated, service_role;
grant usage on schema realtime to postgres with grant option;
grant all on schema realtime to supabase_realtime_admin;
alter default privileges for role supabase_admin in schema realtime
  grant all on tables to postgres, dashboard_user;
alter default privileges for role supabase_admin in schema realtime
  grant all on functions to postgres, dashboard_user;
alter default privileges for role supabase_admin in schema realtime
  grant all on sequences to postgres, dashboard_user;

-- extensions -------------------------------------------------------------------------------------
grant usage on schema extensions to anon, authenticated, service_role;
grant all on schema extensions to dashboard_user;
alter default privileges for role supabase_admin in schema extensions
  grant all on tables to postgres with grant option;
alter default privileges for role supabase_admin in schema extensions
  grant all on functions to postgres with grant option;
alter default privileges for role supabase_admin in schema extensions
  grant all on sequences to postgres with grant option;

-- graphql, graphql_public ------------------------------------------------------------------------
grant usage on schema graphql, graphql_public to anon, authenticated, service_role;
grant usage on schema graphql, graphql_public to postgres with grant option;
alter default privileges for role supabase_admin in schema graphql, graphql_public
  grant all on tables to postgres, anon, authenticated, service_role;
alter default privileges for role supabase_admin in schema graphql, graphql_public
  grant all on functions to postgres, anon, authenticated, service_role;
alter default privileges for role supabase_admin in schema graphql, graphql_public
  grant all on sequences to postgres, anon, authenticated, service_role;

-- vault, supabase_functions ----------------------------------------------------------------------
grant usage on schema vault to postgres, service_role with grant option;
grant usage on schema supabase_functions to postgres, anon, authenticated, service_role;
grant all on schema supabase_functions to supabase_functions_admin;

-- What a migration adds its tables to, drops and makes again.
create publication supabase_realtime;
alter publication supabase_realtime owner to postgres;
