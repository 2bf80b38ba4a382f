create table customs_papers (
  parcel_id int primary key references parcels,
  filed_at timestamptz not null default now()
);

create function enter_customs() returns trigger language plpgsql as $$
begin
  update parcels set state = 'in_customs' where id = new.parcel_id and state = 'sent';
  return new;
end $$;

create trigger enter_customs after insert on customs_papers for each row execute function enter_customs();

create index parcels_returned on parcels (id) where state = 'returned';
