create table b ();
commit;
create table c ();
select nope;