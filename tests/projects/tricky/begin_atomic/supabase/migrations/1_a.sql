create table a (x int);
create function f() returns int language sql
begin atomic
  insert into a values (1);
  select 2;
end;
select f();