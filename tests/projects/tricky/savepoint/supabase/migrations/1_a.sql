create table a ();
savepoint s;