begin;
create table a ();
lock table a;
savepoint s;
create table b ();
rollback to s;
commit;
create table c ();