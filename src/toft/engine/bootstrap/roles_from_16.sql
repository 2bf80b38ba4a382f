-- From 16 on CREATEROLE reaches only as far as ADMIN OPTION does.

grant pg_create_subscription to postgres;
grant anon, authenticated, service_role to postgres with admin option;

-- `alter role authenticator set pgrst...` needs ADMIN, and nothing more than that is given.
grant authenticator to postgres with admin true, inherit false, set false;
