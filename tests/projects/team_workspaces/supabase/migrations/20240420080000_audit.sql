create table private.audit (
  id bigint generated always as identity primary key,
  happened_at timestamptz not null default now(),
  actor uuid default auth.uid(),
  what text not null,
  before jsonb,
  after jsonb
);

create function private.write_audit()
returns trigger
language plpgsql
security definer set search_path = ''
as $$
begin
  insert into private.audit (what, before, after)
  values (
    format('%s on %I.%I', lower(tg_op), tg_table_schema, tg_table_name),
    case when tg_op <> 'INSERT' then to_jsonb(old) end,
    case when tg_op <> 'DELETE' then to_jsonb(new) end
  );
  return null;
end;
$$;

do $$
declare
  audited text;
begin
  foreach audited in array array['teams', 'team_members'] loop
    execute format(
      'create trigger audit_%1$s after insert or update or delete on public.%1$I
         for each row execute function private.write_audit()',
      audited
    );
  end loop;
end
$$;

create view public.team_sizes with (security_invoker = on) as
  select team_id, count(*) as members from public.team_members group by team_id;

grant usage on schema private to reporting;
grant select on private.audit to reporting;
alter role reporting set statement_timeout = '30s';
