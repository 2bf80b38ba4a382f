create table a (t text);
insert into a values (E'it\'s');
create table b ();
