insert into parcels (code, weight) values ('AB1', 200), ('AB2', 900);
update parcels set state = 'sent' where code = 'AB2';
insert into customs_papers (parcel_id) select id from parcels where code = 'AB2';
