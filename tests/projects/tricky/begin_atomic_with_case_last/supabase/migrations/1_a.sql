create function f(x int) returns int language sql
begin atomic
  select case when x > 1 then 1 else 2 end
;end;
create table b ();