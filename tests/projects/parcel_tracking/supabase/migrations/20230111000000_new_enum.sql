-- Taking a value out of an enum means a new type.
create type parcel_state_v2 as enum ('registered', 'sent', 'in_customs', 'delivered');

create table returns (
  parcel_id int primary key references parcels,
  reason text not null default 'unknown'
);

insert into returns (parcel_id) select id from parcels where state = 'returned';

drop index parcels_returned;
alter table parcels alter column state drop default;
alter table parcels alter column state type parcel_state_v2
  using (case state when 'returned' then 'delivered' else state::text end)::parcel_state_v2;
alter table parcels alter column state set default 'registered';
drop type parcel_state;
alter type parcel_state_v2 rename to parcel_state;
