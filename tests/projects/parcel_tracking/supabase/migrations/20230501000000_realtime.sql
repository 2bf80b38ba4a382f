begin;
  -- the usual lines from the documentation
  drop publication if exists supabase_realtime;
  create publication supabase_realtime;
commit;

alter publication supabase_realtime add table parcels, parcel_events;
alter table parcels replica identity full;

alter table parcels enable row level security;
alter table parcel_events enable row level security;
alter table customs_papers enable row level security;
alter table returns enable row level security;

create policy "parcels are found by their code" on parcels for select using (true);
create policy "events are public" on parcel_events for select using (true);
