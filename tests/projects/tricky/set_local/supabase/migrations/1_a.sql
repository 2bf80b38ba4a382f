set local work_mem = '7MB';
create table a as select current_setting('work_mem') as w;