create table public.a (x int);
select pg_catalog.set_config('search_path', '', false);