create materialized view public.sales_by_day as
  select date_trunc('day', placed_at)::date as day, count(*) as orders, sum(total) as total
  from public.orders group by 1
with no data;

create unique index sales_by_day_key on public.sales_by_day (day);

refresh materialized view public.sales_by_day;

revoke all on public.sales_by_day from anon, authenticated;

create procedure public.refresh_reports()
language plpgsql as $$
begin
  refresh materialized view concurrently public.sales_by_day;
  commit;
end $$;

create view api.bestsellers with (security_invoker = true) as
  select sku, sum(pieces) as pieces,
    rank() over (order by sum(pieces) desc) as place
  from public.order_lines
  group by sku;

grant select on api.bestsellers to authenticated;
