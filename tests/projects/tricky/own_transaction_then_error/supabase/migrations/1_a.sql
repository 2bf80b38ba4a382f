begin;
create table a ();
commit;
create table b ();
select nope;
create table c ();