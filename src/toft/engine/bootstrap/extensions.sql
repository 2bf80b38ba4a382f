-- What a fresh project has switched on, made by `postgres` so that it can be dropped again; the objects
-- inside belong to the superuser, because the control files say `trusted`.

create extension "uuid-ossp" with schema extensions;
create extension pgcrypto with schema extensions;
create extension pg_stat_statements with schema extensions;
create extension supabase_vault with schema vault;
