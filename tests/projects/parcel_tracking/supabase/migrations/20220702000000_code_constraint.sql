alter table parcels add constraint parcels_code_unique unique using index parcels_code_key;
alter table parcels add constraint weight_is_positive check (weight > 0) not valid;
