create table a ();
set role anon;