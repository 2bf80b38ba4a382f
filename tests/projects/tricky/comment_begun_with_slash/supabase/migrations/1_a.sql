/*/ a; */ create table a ();
create table b ();