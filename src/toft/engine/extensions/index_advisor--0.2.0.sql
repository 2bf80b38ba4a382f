-- Toft's stand-in for index_advisor: no advice is given.

create function index_advisor(query text)
returns table (
  startup_cost_before jsonb, startup_cost_after jsonb, total_cost_before jsonb, total_cost_after jsonb,
  index_statements text[], errors text[])
language plpgsql as $$
begin
  raise exception using errcode = '0A000', message = 'index_advisor is a stand-in: no advice is given';
end $$;
comment on function index_advisor(text) is 'Stand-in by Toft: refuses.';
