create table a ();
commit;
create table b ();
select nope;