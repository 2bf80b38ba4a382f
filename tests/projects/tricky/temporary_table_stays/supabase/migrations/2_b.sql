insert into t values (1);
create table a as select * from t;