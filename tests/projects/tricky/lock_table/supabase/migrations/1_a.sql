create table a ();
lock table a;