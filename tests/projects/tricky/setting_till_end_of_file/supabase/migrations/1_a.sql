set work_mem = '7MB';
select pg_catalog.set_config('search_path', '', false);
create table public.a ();