-- What the shape of a schema is compared by: one line for each fact, the same on all versions of Postgres.
select format('%s.%s %s%s%s%s', c.relname, a.attname, format_type(a.atttypid,a.atttypmod), case when a.attnotnull then ' not null' else '' end,
  case when a.attgenerated='s' then ' generated' when d.adbin is not null then ' default' else '' end,
  case when d.adbin is not null then ' '||pg_get_expr(d.adbin,d.adrelid) else '' end)
from pg_class c join pg_attribute a on a.attrelid=c.oid and a.attnum>0 and not a.attisdropped left join pg_attrdef d on d.adrelid=c.oid and d.adnum=a.attnum
where c.relnamespace='{schema}'::regnamespace and c.relkind='r' order by c.relname collate "C", a.attnum;
select format('%s: %s %s', t.relname, c.conname, pg_get_constraintdef(c.oid)) from pg_constraint c join pg_class t on t.oid=c.conrelid where c.connamespace='{schema}'::regnamespace and contype<>'n' order by t.relname collate "C", c.conname collate "C";
select format('%s: %s', tablename, regexp_replace(indexdef,'^CREATE ','')) from pg_indexes where schemaname='{schema}' and indexname not in (select conname from pg_constraint) order by tablename collate "C", indexname collate "C";
select format('type %s %s', typname, string_agg(enumlabel,' ' order by enumsortorder)) from pg_type t join pg_enum e on e.enumtypid=t.oid where typnamespace='{schema}'::regnamespace group by typname order by typname collate "C";
select format('function %s(%s) %s %s', proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), provolatile) from pg_proc p where pronamespace='{schema}'::regnamespace and proname not like 'toft%' order by proname collate "C";
select format('%s row security %s', relname, relrowsecurity) from pg_class where relnamespace='{schema}'::regnamespace and relkind='r' order by relname collate "C";
select format('%s: %s', tgrelid::regclass, pg_get_triggerdef(t.oid)) from pg_trigger t join pg_class c on c.oid=tgrelid where not tgisinternal and relnamespace='{schema}'::regnamespace order by tgname collate "C";
