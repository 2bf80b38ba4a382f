set lock_timeout = '2s';
set statement_timeout = '5min';
alter table parcels validate constraint weight_is_positive;
