begin;
create table a (t text default E'it\'s');
commit;
