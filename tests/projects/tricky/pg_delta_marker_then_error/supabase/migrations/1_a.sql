-- pg-delta: transaction=false
create table a ();
select nope;
create table b ();