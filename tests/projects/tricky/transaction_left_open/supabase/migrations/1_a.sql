create table a ();
begin;
create table b ();