\restrict abc
create table a ();
\unrestrict abc
