create table a (x int);
create index concurrently i on a (x);
create table b ();
select nope;