create table a (x int primary key, y int references a deferrable initially deferred);
insert into a values (1, 2);
select 1;