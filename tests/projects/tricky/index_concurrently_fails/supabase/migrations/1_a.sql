create table a (x int);
insert into a values (1), (1);
create unique index concurrently i on a (x);
create table b ();