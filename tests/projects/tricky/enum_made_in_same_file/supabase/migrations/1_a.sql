create type mood as enum ('calm');
alter type mood add value 'busy';
create table a (m mood default 'busy');