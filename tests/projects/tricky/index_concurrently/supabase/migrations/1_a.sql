create table a (x int);
create index concurrently i on a (x);
alter table a add y int;
-- why
reindex table concurrently a;
vacuum a;