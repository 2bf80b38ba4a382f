set role anon;
select 1;
reset role;
create table a ();