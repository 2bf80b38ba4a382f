create role fine;
create role anon;