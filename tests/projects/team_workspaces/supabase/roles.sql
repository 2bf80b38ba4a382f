-- A role for reporting, made the usual way, so that it may run twice.
do $$
begin
  if not exists (select from pg_roles where rolname = 'reporting') then
    create role reporting nologin noinherit;
  end if;
end
$$;

grant reporting to authenticator;
