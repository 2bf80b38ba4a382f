-- a comment
create table a (
  x int
);

select 1;
