create table reservations (
  id uuid primary key default extensions.uuid_generate_v4(),
  book_id bigint not null references books on delete cascade,
  reader uuid not null default auth.uid() references auth.users on delete cascade,
  made_at timestamptz not null default now(),
  unique (book_id, reader)
);

alter table reservations enable row level security;

create policy "own reservations" on reservations
  for all to authenticated
  using ((select auth.uid()) = reader)
  with check ((select auth.uid()) = reader);

alter publication supabase_realtime add table reservations;
