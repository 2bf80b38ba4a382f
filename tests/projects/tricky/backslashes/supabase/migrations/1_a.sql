create table a (t text default 'c:\dir\');
insert into a values (E'\\'), ('\');
create table b ();
