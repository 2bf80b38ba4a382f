create extension if not exists moddatetime schema extensions;
create extension if not exists btree_gist with schema extensions;

create domain money_amount as numeric(12, 2) check (value >= 0);

create table products (
  sku text primary key check (sku ~ '^[A-Z]{3}-\d{4}$'),
  name text not null,
  price money_amount not null,
  attributes jsonb not null default '{}',
  updated_at timestamptz not null default now()
);

create trigger products_updated_at before update on products
  for each row execute procedure extensions.moddatetime (updated_at);

create table price_periods (
  sku text not null references products on delete cascade,
  during daterange not null,
  price money_amount not null,
  exclude using gist (sku with =, during with &&)
);

create table stock (
  sku text primary key references products on delete cascade,
  pieces int not null default 0,
  constraint never_negative check (pieces >= 0)
);
