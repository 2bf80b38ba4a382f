select g from generate_series(1, 3000) g;
create table a ();