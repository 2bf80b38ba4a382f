create table a ();
select 'never closed;
