-- `postgres` manages policies and triggers on the services' tables through membership, and can not become
-- these roles. What membership gives beyond that is refused by the guard.

grant supabase_auth_admin, supabase_storage_admin, supabase_realtime_admin to postgres
  with admin false, inherit true, set false;
