-- pg-delta: transaction=false
create table parcel_events (
  id bigint generated always as identity primary key,
  parcel_id int not null references parcels on delete cascade,
  state parcel_state not null,
  at timestamptz not null default now()
);
create index concurrently parcel_events_parcel on parcel_events (parcel_id, at desc);
create function note_state() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  if tg_op = 'INSERT' or new.state is distinct from old.state then
    insert into public.parcel_events (parcel_id, state) values (new.id, new.state);
  end if;
  return new;
end $$;
create trigger note_state after insert or update of state on parcels for each row execute function note_state();
