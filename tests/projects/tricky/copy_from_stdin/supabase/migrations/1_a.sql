create table a (x int);
copy a from stdin;
1
2
\.
