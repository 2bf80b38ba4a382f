create table a ();
/* never closed;
