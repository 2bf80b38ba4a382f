/* a; /* b; */ c; */ create table a ();
-- d;
create /* ; */ table b ();