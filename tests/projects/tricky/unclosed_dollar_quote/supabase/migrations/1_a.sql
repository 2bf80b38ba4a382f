create table a ();
do $$ begin
