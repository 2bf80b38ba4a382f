-- `postgres` manages policies and triggers on the services' tables through membership. What membership
-- gives beyond that is refused by the guard.

grant supabase_auth_admin, supabase_storage_admin, supabase_realtime_admin to postgres;
