create table a$b (x int);
create table c$d (x int);