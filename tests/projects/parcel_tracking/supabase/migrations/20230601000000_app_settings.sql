alter database postgres set "app.settings.jwt_exp" to '7200';
alter role authenticated set statement_timeout = '15s';
comment on table parcels is E'State changes are in parcel_events\nsee 20230401000000';
