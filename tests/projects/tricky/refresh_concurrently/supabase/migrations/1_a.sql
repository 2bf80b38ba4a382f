create materialized view m as select 1 as x;
create unique index i on m (x);
refresh materialized view concurrently m;