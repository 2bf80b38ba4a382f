create table a ();
grant select on a to reader;