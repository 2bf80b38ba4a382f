with wanted as (select oid, nspname from pg_namespace where nspname = any ($1::text[]))
select json_build_object(
  'tables', coalesce((select json_agg(json_build_object('schema', w.nspname, 'name', c.relname, 'kind', c.relkind,
      'updatable', c.relkind in ('r', 'p') or pg_relation_is_updatable(c.oid, false) & 28 = 28,
      'columns', (select json_agg(json_build_object('name', a.attname, 'type', t.typname,
          'element', e.typname, 'enum', coalesce(e.typtype, t.typtype) = 'e',
          'enum_schema', (select n.nspname from pg_namespace as n where n.oid = coalesce(e.typnamespace, t.typnamespace)),
          'nullable', not a.attnotnull,
          'has_default', a.atthasdef or a.attidentity <> '', 'always', a.attidentity = 'a' or a.attgenerated <> '')
          order by a.attname)
        from pg_attribute as a join pg_type as t on t.oid = a.atttypid
        left join pg_type as e on e.oid = t.typelem and t.typcategory = 'A'
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped),
      'relations', coalesce((select json_agg(json_build_object('name', k.conname,
          'columns', (select json_agg(a.attname order by o.n) from unnest(k.conkey) with ordinality as o (c, n)
            join pg_attribute as a on a.attrelid = k.conrelid and a.attnum = o.c),
          'to', f.relname, 'to_columns', (select json_agg(a.attname order by o.n)
            from unnest(k.confkey) with ordinality as o (c, n)
            join pg_attribute as a on a.attrelid = k.confrelid and a.attnum = o.c),
          'one', exists (select from pg_index as x where x.indrelid = k.conrelid and x.indisunique
            and x.indnkeyatts = cardinality(k.conkey)
            and (string_to_array(x.indkey::text, ' ')::int2[]) @> k.conkey)) order by k.conname)
        from pg_constraint as k join pg_class as f on f.oid = k.confrelid join wanted as v on v.oid = f.relnamespace
        where k.conrelid = c.oid and k.contype = 'f'), '[]')) order by w.nspname, c.relname)
    from pg_class as c join wanted as w on w.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition), '[]'),
  'enums', coalesce((select json_agg(json_build_object('schema', w.nspname, 'name', t.typname,
      'values', (select json_agg(v.enumlabel order by v.enumsortorder) from pg_enum as v where v.enumtypid = t.oid))
      order by w.nspname, t.typname)
    from pg_type as t join wanted as w on w.oid = t.typnamespace where t.typtype = 'e'), '[]'),
  'functions', coalesce((select json_agg(json_build_object('schema', w.nspname, 'name', p.proname,
      'arguments', (select coalesce(json_agg(json_build_object('name', coalesce(p.proargnames[o.n], ''), 'type', t.typname,
          'optional', o.n > p.pronargs - p.pronargdefaults) order by o.n), '[]')
        from unnest(p.proargtypes) with ordinality as o (t, n) join pg_type as t on t.oid = o.t),
      'returns', r.typname, 'table', (select c.relname from pg_class as c where c.oid = r.typrelid),
      'set', p.proretset) order by w.nspname, p.proname, p.oid)
    from pg_proc as p join wanted as w on w.oid = p.pronamespace join pg_type as r on r.oid = p.prorettype
    where p.prokind = 'f' and p.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)
      and not exists (select from pg_depend as d where d.classid = 'pg_proc'::regclass and d.objid = p.oid
        and d.deptype = 'e')), '[]'))
