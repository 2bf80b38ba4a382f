create unique index concurrently if not exists parcels_code_key on parcels (code);
