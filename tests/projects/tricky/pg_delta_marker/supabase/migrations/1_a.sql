-- pg-delta: transaction=false
create table a (x int);
create index concurrently i on a (x);