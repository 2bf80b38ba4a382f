create table a ();
begin;
vacuum a;
commit;