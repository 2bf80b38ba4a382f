-- This file governs its own transactions: the backfill goes in two parts.
begin;
alter type parcel_state rename value 'announced' to 'registered';
alter table parcels add column created_at timestamptz;
commit;

begin;
update parcels set created_at = created at time zone 'utc' where id % 2 = 0;
commit;
begin;
savepoint half;
update parcels set created_at = created at time zone 'utc' where created_at is null;
release savepoint half;
alter table parcels
  alter column created_at set default now(),
  alter column created_at set not null,
  drop column created;
commit;
