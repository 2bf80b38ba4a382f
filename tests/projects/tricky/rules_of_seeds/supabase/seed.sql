lock table a;
savepoint s;
insert into a values (1);
rollback to s;
insert into a values (2);