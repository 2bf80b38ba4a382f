do $$ begin perform ';'; end $$;
do $tag$ begin perform $$;$$; end $tag$;
prepare p as select $1::int;
create table a (t text default $$a;b$$);