create table a (x int primary key, y int references a deferrable initially deferred);
insert into a values (1, 2);
insert into a values (2, 1);