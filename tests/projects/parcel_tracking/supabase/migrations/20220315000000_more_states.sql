-- New values are only added here; the next file uses them.
alter type parcel_state add value if not exists 'in_customs' before 'delivered';
alter type parcel_state add value 'returned';
