create function f(x int) returns int language sql
begin atomic
  select case when x > 1 then 1 else 2 end;
  select 3;
end;
create table b ();