create table a (x int);
create table b (x int);
create rule r as on insert to a do (insert into b values ((1)); insert into b values (2));