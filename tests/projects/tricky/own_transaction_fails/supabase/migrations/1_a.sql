create table a ();
begin;
create table b ();
select nope;
commit;