-- Before 16, CREATEROLE may grant itself pg_execute_server_program, which is the operating system's user.
-- So no role that a tenant can reach has it, and nobody administers `authenticator`: what needs
-- CREATEROLE in a migration is done by the runner.

alter role postgres nocreaterole;
alter role supabase_storage_admin nocreaterole;
alter role supabase_functions_admin nocreaterole;
alter role dashboard_user nocreaterole;

grant anon, authenticated, service_role to postgres;
