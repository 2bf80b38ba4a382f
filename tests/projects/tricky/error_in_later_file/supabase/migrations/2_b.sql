create table b ();
select nope;