do $$ begin
  if not exists (select from pg_roles where rolname = 'reader') then create role reader; end if;
end $$;
create role writer login;