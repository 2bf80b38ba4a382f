create table a (weekend int);
create function f() returns int language sql
begin atomic
  select weekend from a;
  select 3;
end;