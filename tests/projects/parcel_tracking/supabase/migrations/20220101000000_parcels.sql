create type parcel_state as enum ('announced', 'sent', 'delivered');

create table parcels (
  id serial primary key,
  code varchar(20) not null,
  state parcel_state not null default 'announced',
  weight int,
  created timestamp default now()
);
