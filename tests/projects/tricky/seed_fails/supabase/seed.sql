create table b ();
insert into a values (nope);